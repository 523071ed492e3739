import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.TreeMap;
import javax.xml.parsers.SAXParser;
import javax.xml.parsers.SAXParserFactory;
import org.xml.sax.Attributes;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;
import org.xml.sax.SAXParseException;
import org.xml.sax.helpers.DefaultHandler;

/** Reads documents from standard input as expat.py does, and answers as it does. With "namespaces", prefixes must be declared. */
public class Sax {
    static String escape(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\"", "&quot;")
            .replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;");
    }

    static class Canonical extends DefaultHandler {
        final StringBuilder out = new StringBuilder();

        @Override public void startElement(String uri, String local, String name, Attributes attributes) {
            TreeMap<String, String> sorted = new TreeMap<>();
            for (int i = 0; i < attributes.getLength(); i++) sorted.put(attributes.getQName(i), attributes.getValue(i));
            out.append('<').append(name);
            sorted.forEach((n, v) -> out.append(' ').append(n).append("=\"").append(escape(v)).append('"'));
            out.append('>');
        }

        @Override public void endElement(String uri, String local, String name) { out.append("</").append(name).append('>'); }

        @Override public void characters(char[] text, int from, int length) { out.append(escape(new String(text, from, length))); }

        @Override public void ignorableWhitespace(char[] text, int from, int length) { characters(text, from, length); }

        @Override public InputSource resolveEntity(String publicId, String systemId) { return new InputSource(new ByteArrayInputStream(new byte[0])); }

        @Override public void fatalError(SAXParseException e) throws SAXException { throw e; }
    }

    public static void main(String[] args) throws Exception {
        SAXParserFactory factory = SAXParserFactory.newInstance();
        factory.setNamespaceAware(args.length > 0);
        if (args.length > 0) factory.setFeature("http://xml.org/sax/features/namespace-prefixes", true);
        factory.setFeature("http://xml.org/sax/features/external-general-entities", false);
        factory.setFeature("http://xml.org/sax/features/external-parameter-entities", false);
        factory.setFeature("http://apache.org/xml/features/nonvalidating/load-external-dtd", false);
        DataInputStream in = new DataInputStream(System.in);
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        StringBuilder hex = new StringBuilder();
        while (true) {
            int length;
            try { length = in.readInt(); } catch (EOFException e) { break; }
            byte[] document = in.readNBytes(length);
            SAXParser parser = factory.newSAXParser();
            Canonical canonical = new Canonical();
            try {
                parser.parse(new ByteArrayInputStream(document), canonical);
                hex.setLength(0);
                hex.append('+');
                for (byte b : canonical.out.toString().getBytes(StandardCharsets.UTF_8)) hex.append(String.format("%02x", b));
                answers.println(hex);
            } catch (SAXException | IOException e) {
                answers.println("-");
            }
        }
        answers.flush();
    }
}
