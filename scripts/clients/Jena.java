import java.net.Authenticator;
import java.net.PasswordAuthentication;
import java.net.http.HttpClient;
import org.apache.jena.query.*;
import org.apache.jena.rdf.model.*;
import org.apache.jena.rdfconnection.*;
import org.apache.jena.atlas.web.HttpException;
import org.apache.jena.sparql.exec.http.*;

/** Jena's connection to a server. Arguments: a server that all may write to, one with tokens, a token. */
public class Jena {
    static final String V = "http://example.org/sky/vocabulary#";
    static final String MARS = "http://example.org/systems/Mars";
    static final String MOONS = "SELECT ?m WHERE { GRAPH <" + MARS + "> { ?m a <" + V + "Moon> } } ORDER BY ?m";
    static final String CONSTRUCT = "CONSTRUCT { ?m a <" + V + "Moon> } WHERE { GRAPH ?g { ?m a <" + V + "Moon> } }";

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    interface Act { void run(); }

    static void refuses(Act act, String what) {
        try {
            act.run();
        } catch (HttpException | org.apache.jena.shared.JenaException e) {
            return;
        }
        throw new AssertionError("an error was not seen as one: " + what);
    }

    static void talk(RDFConnection c, String name) {
        StringBuilder found = new StringBuilder();
        c.querySelect(MOONS, row -> found.append(row.getResource("m").getLocalName()).append(' '));
        check(found.toString().equals("Deimos Phobos "), "SELECT: " + found);
        check(c.queryAsk("ASK { ?s ?p ?o }"), "ASK");
        check(c.queryConstruct(CONSTRUCT).size() == 14, "CONSTRUCT");
        check(c.queryDescribe("DESCRIBE <http://example.org/sky/Mars>") != null, "DESCRIBE");
        String graph = "http://example.org/clients/" + name;
        c.update("INSERT DATA { GRAPH <" + graph + "> { <a:a> <a:b> 1 } }");
        check(c.queryAsk("ASK { GRAPH <" + graph + "> { ?s ?p 1 } }"), "an update");
        // Jena reads queries itself before it sends them: these are not read.
        refuses(() -> QueryExecutionHTTP.service(ENDPOINT).queryString("SELECT * {").build().execSelect().hasNext(), "SELECT * {");
        refuses(() -> UpdateExecutionHTTP.service(ENDPOINT).updateString("INSERT DATA {").build().execute(), "INSERT DATA {");
    }

    static String ENDPOINT;

    public static void main(String[] a) {
        for (String[] ends : new String[][] {{"sparql", "sparql", "store"}, {"query", "update", "store"}, {"", "", "store"}}) {
            ENDPOINT = a[0] + "/" + ends[0];
            try (RDFConnection c = RDFConnectionRemote.newBuilder().destination(a[0] + "/")
                    .queryEndpoint(ends[0]).updateEndpoint(ends[1]).gspEndpoint(ends[2]).build()) {
                talk(c, "jena-" + ends[0]);
                check(c.fetch(MARS).size() == 10, "a graph");
                Model m = ModelFactory.createDefaultModel();
                m.createResource("a:s").addProperty(m.createProperty("a:p"), "x");
                c.put("http://example.org/clients/jena-put", m);
                check(c.fetch("http://example.org/clients/jena-put").size() == 1, "PUT");
                c.delete("http://example.org/clients/jena-put");
            }
        }
        // One address for all, as RDFConnection.connect takes it.
        try (RDFConnection c = RDFConnection.connect(a[0])) {
            check(c.queryAsk("ASK { ?s ?p ?o }"), "connect: ASK");
        }
        HttpClient client = HttpClient.newBuilder().authenticator(new Authenticator() {
            @Override protected PasswordAuthentication getPasswordAuthentication() {
                return new PasswordAuthentication("anybody", a[2].toCharArray());
            }
        }).build();
        try (RDFConnection c = RDFConnectionRemote.newBuilder().destination(a[1] + "/sparql").queryEndpoint("").updateEndpoint("")
                .httpClient(client).build()) {
            check(c.queryAsk("ASK { ?s ?p ?o }"), "Basic");
            c.update("INSERT DATA { <a:a> <a:b> 1 }");
        }
        refuses(() -> {
            try (RDFConnection c = RDFConnectionRemote.newBuilder().destination(a[1] + "/sparql").queryEndpoint("").build()) {
                c.queryAsk("ASK { ?s ?p ?o }");
            }
        }, "no token");
    }
}
