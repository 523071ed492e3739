import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.jena.riot.Lang;
import org.apache.jena.riot.RDFParser;
import org.apache.jena.riot.RiotException;
import org.apache.jena.riot.lang.rdfxml.RRX;
import org.apache.jena.riot.system.ErrorHandler;
import org.apache.jena.riot.system.StreamRDF;
import org.apache.jena.riot.writer.WriterStreamRDFPlain;
import org.apache.jena.atlas.io.IndentedWriter;

/**
 * Reads documents in RDF/XML from standard input, each after its length, and answers each with a line for each of Jena's readers: + and its N-Triples in
 * hexadecimal, or - and the error.
 */
public class Judge {
    static final ErrorHandler STRICT = new ErrorHandler() {
        @Override public void warning(String message, long line, long col) { }
        @Override public void error(String message, long line, long col) { throw new RiotException(message); }
        @Override public void fatal(String message, long line, long col) { throw new RiotException(message); }
    };

    @SuppressWarnings("removal")
    static final Lang[] READERS = { RRX.RDFXML_ARP1, RRX.RDFXML_StAX_ev, RRX.RDFXML_StAX_sr, RRX.RDFXML_SAX };

    static String answer(Lang reader, byte[] document) {
        try {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            IndentedWriter text = new IndentedWriter(bytes);
            StreamRDF out = new WriterStreamRDFPlain(text);
            RDFParser.create().source(new ByteArrayInputStream(document)).lang(reader).base("http://b/d/f").errorHandler(STRICT).parse(out);
            text.flush();
            StringBuilder hex = new StringBuilder("+");
            for (byte b : bytes.toByteArray()) hex.append(String.format("%02x", b));
            return hex.toString();
        } catch (RuntimeException e) {
            return "-" + String.valueOf(e.getMessage()).replaceAll("\\s+", " ");
        }
    }

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        while (true) {
            int length;
            try { length = in.readInt(); } catch (EOFException e) { break; }
            byte[] document = in.readNBytes(length);
            for (Lang reader : READERS) answers.println(answer(reader, document));
        }
        answers.flush();
    }
}
