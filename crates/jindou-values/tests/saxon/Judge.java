import net.sf.saxon.s9api.*;
import java.io.*;
import java.nio.charset.StandardCharsets;

/**
 * Evaluates patterns with Saxon. An input line has a pattern, flags, a text and a replacement, in which `%hex;` stands
 * for a character; the output line has the results of `matches` and `replace`.
 */
public class Judge {
    static String un(String s) {
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < s.length(); ) {
            if (s.charAt(i) == '%') { int e = s.indexOf(';', i); b.appendCodePoint(Integer.parseInt(s.substring(i + 1, e), 16)); i = e + 1; }
            else b.append(s.charAt(i++));
        }
        return b.toString();
    }
    static String esc(String s) {
        StringBuilder b = new StringBuilder();
        s.codePoints().forEach(c -> { if (c > 0x20 && c < 0x7f && c != '%') b.appendCodePoint(c); else b.append('%').append(Integer.toHexString(c)).append(';'); });
        return b.toString();
    }
    public static void main(String[] a) throws Exception {
        Processor p = new Processor(false);
        XPathCompiler c = p.newXPathCompiler();
        for (String v : new String[]{"t", "p", "r", "f"}) c.declareVariable(new QName(v));
        XPathExecutable m = c.compile("matches($t, $p, $f)"), r = c.compile("replace($t, $p, $r, $f)");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        String line;
        while ((line = in.readLine()) != null) {
            String[] w = line.split("\t", -1);
            StringBuilder o = new StringBuilder();
            for (XPathExecutable x : new XPathExecutable[]{m, r}) {
                XPathSelector s = x.load();
                s.setVariable(new QName("p"), new XdmAtomicValue(un(w[0])));
                s.setVariable(new QName("f"), new XdmAtomicValue(un(w[1])));
                s.setVariable(new QName("t"), new XdmAtomicValue(un(w[2])));
                s.setVariable(new QName("r"), new XdmAtomicValue(un(w[3])));
                if (o.length() > 0) o.append('\t');
                final XPathSelector q = s; final String[] told = {null};
                Thread t = new Thread(() -> told[0] = answer(q, x == m));
                t.setDaemon(true);
                t.start();
                t.join(1000);
                o.append(told[0] == null ? "slow" : told[0]);
                // Saxon's matcher backtracks, and for some patterns it never ends.
                if (told[0] == null) {
                    try { t.stop(); } catch (UnsupportedOperationException e) { t.setPriority(Thread.MIN_PRIORITY); }
                    if (x == m) o.append("\tslow");
                    break;
                }
            }
            out.println(o);
            out.flush();
        }
        System.exit(0);
    }
    static String answer(XPathSelector s, boolean truth) {
        try { return truth ? s.evaluateSingle().toString() : "=" + esc(s.evaluateSingle().getUnderlyingValue().getStringValue()); }
        catch (SaxonApiException e) { return "!" + (e.getErrorCode() == null ? "?" : e.getErrorCode().getLocalName()) + ' ' + String.valueOf(e.getMessage()).replaceAll("[\t\n\r]", " "); }
        catch (Throwable e) { return "!!" + e.toString().replaceAll("[\t\n\r]", " "); }
    }
}
