import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.jena.riot.Lang;
import org.apache.jena.riot.RDFParser;
import org.apache.jena.riot.RiotException;
import org.apache.jena.riot.system.ErrorHandler;
import org.apache.jena.riot.system.StreamRDF;
import org.apache.jena.riot.writer.WriterStreamRDFPlain;
import org.apache.jena.atlas.io.IO;
import org.apache.jena.atlas.io.IndentedWriter;

/** Reads documents in RDF/XML from standard input, each after its length, and answers each with a line: + and its N-Triples in hexadecimal, or - and the error. */
public class Judge {
    static final ErrorHandler STRICT = new ErrorHandler() {
        @Override public void warning(String message, long line, long col) { }
        @Override public void error(String message, long line, long col) { throw new RiotException(message); }
        @Override public void fatal(String message, long line, long col) { throw new RiotException(message); }
    };

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        while (true) {
            int length;
            try { length = in.readInt(); } catch (EOFException e) { break; }
            byte[] document = in.readNBytes(length);
            try {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                IndentedWriter text = new IndentedWriter(bytes);
                StreamRDF out = new WriterStreamRDFPlain(text);
                out.start();
                RDFParser.create().source(new ByteArrayInputStream(document)).lang(Lang.RDFXML).base("http://b/d/f").errorHandler(STRICT).parse(out);
                out.finish();
                text.flush();
                StringBuilder hex = new StringBuilder("+");
                for (byte b : bytes.toByteArray()) hex.append(String.format("%02x", b));
                answers.println(hex);
            } catch (RuntimeException e) {
                answers.println("-" + String.valueOf(e.getMessage()).replaceAll("\\s+", " "));
            }
        }
        answers.flush();
    }
}
