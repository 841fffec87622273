package pxe

import (
	"slices"
	"strings"
	"testing"
)

// This is how iPXE takes a script apart, written down from its behaviour (see quote.go), to check what our scripts
// become in it. It does not run anything.

// verbs are the commands that Debian 12's build from 2019 and iPXE 2.0 both have.
var verbs = strings.Fields(`chain kernel initrd imgfetch imgargs imgselect imgexec imgstat imgfree boot sanboot exit
	reboot dhcp ifconf ifopen ifclose ifstat route isset iseq inc set clear show read prompt menu item choose login sync
	sleep cpuid config shell echo goto`)

// command is one command of a script: its words before ${...} is replaced.
type command struct {
	label string
	words []string
	then  string // ||, && or ; or nothing
}

// parseScript takes a script apart; it fails the test for what iPXE would not take for a script.
func parseScript(t testing.TB, text string) (out []command) {
	t.Helper()
	if !strings.HasPrefix(text, "#!ipxe\n") {
		t.Fatalf("no iPXE script: %.40q", text)
	}
	if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\\\n") {
		t.Fatalf("the last line is open: %q", text)
	}
	text = strings.NewReplacer("\\\r\n", "", "\\\n", "").Replace(strings.TrimSuffix(text, "\n"))
	for _, line := range strings.Split(text, "\n") {
		label, line := "", strings.TrimLeft(line, " \t\r\v\f")
		if strings.HasPrefix(line, ":") {
			label, line, _ = strings.Cut(line[1:], " ")
			out = append(out, command{label: label})
		}
		out = append(out, parseLine(line)...)
	}
	return out
}

func parseLine(line string) (out []command) {
	var c command
	for _, w := range strings.Fields(line) {
		switch {
		case w[0] == '#':
			if c.words != nil {
				out = append(out, c)
			}
			return out
		case w == "||" || w == "&&" || w == ";":
			c.then = w
			out = append(out, c)
			c = command{}
		default:
			c.words = append(c.words, w)
		}
	}
	if c.words != nil {
		out = append(out, c)
	}
	return out
}

// ourVariables are the settings that our scripts may have iPXE replace.
var ourVariables = strings.Fields(`uuid mac:hexhyp memsize serial:uristring asset:uristring manufacturer:uristring product:uristring
	board-serial:uristring platform:uristring buildarch:uristring version:uristring cpumodel:uristring ip pause choice efi/SecureBoot:hexraw
	net0/mac:hexhyp net1/mac:hexhyp net2/mac:hexhyp net3/mac:hexhyp net4/mac:hexhyp net5/mac:hexhyp net6/mac:hexhyp net7/mac:hexhyp`)

// checkScript fails the test unless a script uses the common verbs only, every goto has a label, all is ASCII, and
// iPXE replaces only what we mean it to. It returns the script's shape: verbs and labels without their words.
func checkScript(t testing.TB, text string) (shape []string) {
	t.Helper()
	labels, jumps := map[string]bool{}, map[string]bool{}
	for _, c := range parseScript(t, text) {
		if c.label != "" {
			if labels[c.label] {
				t.Errorf("label %s twice", c.label)
			}
			labels[c.label] = true
			shape = append(shape, ":"+c.label)
		}
		if len(c.words) == 0 {
			continue
		}
		verb := c.words[0]
		if !slices.Contains(verbs, verb) {
			t.Errorf("verb %q", verb)
		}
		if verb == "item" || verb == "goto" && c.words[1] != "${choice}" { // which is an item's
			jumps[c.words[1]] = true
		}
		if len(c.words) > 1 && verb == "echo" && strings.HasPrefix(c.words[1], "-") {
			t.Errorf("echo takes %q for an option", c.words[1])
		}
		for _, m := range variableRE.FindAllStringSubmatch(strings.Join(c.words, " "), -1) {
			if !slices.Contains(ourVariables, m[1]) {
				t.Errorf("iPXE would replace %q", m[0])
			}
		}
		shape = append(shape, verb+" "+c.then)
	}
	for j := range jumps {
		if !labels[j] {
			t.Errorf("goto %s leads nowhere", j)
		}
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); i >= 0 {
		t.Errorf("%q at %d", text[i], i)
	}
	return shape
}
