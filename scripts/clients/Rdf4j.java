import java.util.stream.Collectors;
import org.eclipse.rdf4j.model.*;
import org.eclipse.rdf4j.model.impl.SimpleValueFactory;
import org.eclipse.rdf4j.query.*;
import org.eclipse.rdf4j.repository.*;
import org.eclipse.rdf4j.repository.sparql.SPARQLRepository;

/** RDF4J's SPARQLRepository. Arguments: a server that all may write to, one with tokens, a token. */
public class Rdf4j {
    static final String V = "http://example.org/sky/vocabulary#";
    static final ValueFactory F = SimpleValueFactory.getInstance();
    static final IRI MARS = F.createIRI("http://example.org/systems/Mars");
    static final String MOONS = "SELECT ?m WHERE { GRAPH <" + MARS + "> { ?m a <" + V + "Moon> } } ORDER BY ?m";
    static final String CONSTRUCT = "CONSTRUCT { ?m a <" + V + "Moon> } WHERE { GRAPH ?g { ?m a <" + V + "Moon> } }";

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    interface Act { void run(); }

    static void refuses(Act act, String what) {
        try {
            act.run();
        } catch (RepositoryException | QueryEvaluationException | UpdateExecutionException | MalformedQueryException e) {
            return;
        }
        throw new AssertionError("an error was not seen as one: " + what);
    }

    static void talk(SPARQLRepository repository, boolean quads) {
        repository.init();
        try (RepositoryConnection c = repository.getConnection()) {
            try (TupleQueryResult rows = c.prepareTupleQuery(MOONS).evaluate()) {
                String found = rows.stream().map(r -> ((IRI) r.getValue("m")).getLocalName()).collect(Collectors.joining(" "));
                check(found.equals("Deimos Phobos"), "SELECT: " + found);
            }
            TupleQuery bound = c.prepareTupleQuery("SELECT ?m WHERE { GRAPH ?g { ?m a <" + V + "Moon> } }");
            bound.setBinding("g", MARS);
            try (TupleQueryResult rows = bound.evaluate()) {
                check(rows.stream().count() == 2, "a binding");
            }
            check(c.prepareBooleanQuery("ASK { ?s ?p ?o }").evaluate(), "ASK");
            try (GraphQueryResult graph = c.prepareGraphQuery(CONSTRUCT).evaluate()) {
                check(graph.stream().count() == 14, "CONSTRUCT");
            }
            IRI graph = F.createIRI("http://example.org/clients/rdf4j");
            c.clear(graph);
            // Without its mode for quads RDF4J takes an endpoint for one graph, and counts that whatever the context.
            if (quads) check(c.size(graph) == 0, "size of an empty context: " + c.size(graph));
            c.prepareUpdate("INSERT DATA { GRAPH <" + graph + "> { <a:a> <a:b> 1 , 2 } }").execute();
            if (quads) check(c.size(graph) == 2, "size of a context: " + c.size(graph));
            c.add(F.createIRI("a:a"), F.createIRI("a:b"), F.createLiteral("three"), graph);
            if (quads) check(c.size(graph) == 3, "size after add: " + c.size(graph));
            check(c.hasStatement(null, null, F.createLiteral("three"), false, graph), "a statement that was added");
            if (quads) check(c.size(graph, MARS) == 13, "size of two contexts: " + c.size(graph, MARS));
            check(c.size() > 0, "size of all: " + c.size());
            check(c.size((Resource) null) >= 0, "size of the default graph");
            try (RepositoryResult<Resource> contexts = c.getContextIDs()) {
                check(contexts.stream().anyMatch(MARS::equals), "contexts");
            }
            try (RepositoryResult<Statement> all = c.getStatements(null, null, null, MARS)) {
                check(all.stream().count() == 10, "statements");
            }
            refuses(() -> c.prepareTupleQuery("SELECT * {").evaluate().close(), "SELECT * {");
            refuses(() -> c.prepareUpdate("INSERT DATA {").execute(), "INSERT DATA {");
        }
        repository.shutDown();
    }

    public static void main(String[] a) {
        talk(new SPARQLRepository(a[0] + "/sparql"), false);
        talk(new SPARQLRepository(a[0] + "/query", a[0] + "/update"), false);
        SPARQLRepository quads = new SPARQLRepository(a[0] + "/sparql");
        quads.enableQuadMode(true);
        talk(quads, true);
        SPARQLRepository guarded = new SPARQLRepository(a[1] + "/sparql");
        guarded.setUsernameAndPassword("anybody", a[2]);
        talk(guarded, false);
        SPARQLRepository stranger = new SPARQLRepository(a[1] + "/sparql");
        refuses(() -> talk(stranger, false), "no token");
    }
}
