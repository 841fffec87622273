package kickstart

import (
	"fmt"
	"regexp"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/docschema"
)

// mergeDocument checks a profile's own kickstart file and adds what Slipway needs to know of it: the host name, if the
// file has none, and the reports. Everything else stays as it is written; the rest of the configuration is not added.
func (w *writer) mergeDocument(text string) string {
	seen := w.checkDocument(text)
	text = w.setHostname(text)
	var b strings.Builder
	b.WriteString(strings.TrimRight(text, "\n") + "\n")
	if !seen["network --hostname"] && w.c.Host.Hostname != "" {
		b.WriteString("\nnetwork" + w.option("/host/hostname", "hostname", w.c.Host.FQDN()) + "\n")
	}
	if !seen["reboot"] && !seen["poweroff"] && !seen["shutdown"] && !seen["halt"] {
		b.WriteString("reboot\n")
	}
	reports(&b, w.c)
	for _, u := range w.ignored() {
		w.report.Warnf(u, "ignored", "is not added to the profile's own kickstart file").
			Hint = "write it in the file, or leave the document out"
	}
	return b.String()
}

var hostnameRE = regexp.MustCompile(`(--hostname[ =])("[^"]*"|'[^']*'|[^\s"']+)`)

// setHostname puts the host's own name where the file says one: what is said of one host wins over the document, which
// speaks of all hosts of its profile. Anaconda takes the first name that it reads.
func (w *writer) setHostname(text string) string {
	name := w.c.Host.FQDN()
	if w.c.Host.Hostname == "" {
		return text
	}
	var b strings.Builder
	isSection, n := false, 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) > 0 && (table[words[0]] != nil && words[0][0] == '%' || words[0] == "%end") {
			isSection = words[0] != "%end"
		}
		if at := hostnameRE.FindStringSubmatchIndex(line); at != nil && !isSection && words[0] == "network" {
			if own := strings.Trim(line[at[4]:at[5]], `"'`); own != name {
				f := w.report.Warnf("/document", "overridden", "says --hostname, and %q of this host wins", name)
				f.Source, f.Hint = fmt.Sprintf("document:%d:%d", n, at[0]+1), "take it out of the document"
				line = line[:at[0]] + strings.TrimPrefix(w.option("/host/hostname", "hostname", name), " ") + line[at[1]:]
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// checkDocument reports what Anaconda of this release would refuse, with the place, and returns the commands that were seen.
func (w *writer) checkDocument(text string) map[string]bool {
	c := &checker{w: w, text: text, at: releaseOf(w.t.OS, w.release()), seen: map[string]bool{}}
	for _, l := range linesOf(text) {
		c.line(l)
	}
	if c.section != "" {
		c.fail(c.opened, 1, "unclosed", "write %end after its last line", "%s has no %%end", c.section)
	}
	return c.seen
}

// checker goes through a file.
type checker struct {
	w       *writer
	text    string
	at      release
	seen    map[string]bool
	section string // that is open
	opened  int    // the line of its header
}

func (c *checker) fail(line, column int, code, hint, format string, args ...any) {
	f := c.w.report.Errorf("/document", code, format, args...)
	f.Source, f.Hint = fmt.Sprintf("document:%d:%d", line, column), hint
}

func (c *checker) warn(line, column int, code, hint, format string, args ...any) {
	c.fail(line, column, code, hint, format, args...)
	c.w.report[len(c.w.report)-1].Severity = machineconfig.SeverityWarning
}

// os names what reads the file, for people.
func (c *checker) os() string {
	if c.at.isFedora {
		return fmt.Sprintf("Fedora %d", c.at.n)
	}
	return fmt.Sprintf("Enterprise Linux %d", c.at.n)
}

func (c *checker) line(l line) {
	head := l.head
	isSection := strings.HasPrefix(head, "%") && table[head] != nil
	switch {
	case head == "" || strings.HasPrefix(head, "#"):
	case head == "%end" && c.section == "":
		c.fail(l.n, 1, "unbalanced", "take it out, or write the section before it", "%%end closes no section")
	case head == "%end":
		c.section = ""
	case isSection:
		if c.section != "" {
			c.fail(c.opened, 1, "unclosed", "write %end after its last line", "%s has no %%end before the next section", c.section)
		}
		c.section, c.opened = head, l.n
		c.command(l)
	case head == "%include" && c.section == "" || head == "%include" && c.section == "%packages":
		c.include(l)
	case c.section == "%packages":
		c.packages(l)
	case c.section != "" || head == "%ksappend":
	case strings.HasPrefix(head, "%"):
		c.fail(l.n, 1, "unknown-section", "use one of "+strings.Join(names(c.at, true), " "), "%s is not a section of kickstart", cut(head))
	default:
		c.command(l)
	}
}

// command checks a command, or the header of a section, with its options.
func (c *checker) command(l line) {
	words, open := l.words()
	if l.isContinued() {
		c.fail(l.n, len([]rune(strings.TrimRight(l.raw, "\r\n"))), "continued", "write the whole command on one line", "a backslash at the end of a line continues nothing in a kickstart file")
		return
	}
	if open != nil {
		c.fail(open.line, open.column, "open-quote", "write the other quote", "a quote begins here that is not closed")
		return
	}
	if len(words) == 0 {
		return
	}
	name := words[0].text
	known := table[name]
	switch {
	case known == nil:
		c.fail(words[0].line, words[0].column, "unknown-command", nearest(name, names(c.at, false)), "%s is not a command of kickstart", cut(name))
		return
	case !known.in.has(c.at):
		c.fail(words[0].line, words[0].column, "other-release", "take it out, or write what took its place", "%s does not know the command %s", c.os(), cut(name))
		return
	case known.passed.has(c.at):
		c.warn(words[0].line, words[0].column, "deprecated", "take it out", "%s passes over the command %s, or soon will", c.os(), name)
	}
	c.seen[name] = true
	g := c.options(known, words[1:])
	for _, o := range known.options {
		if o.isNeeded && o.in.has(c.at) && !g.has(o.name) && !known.takesAll {
			c.fail(words[0].line, words[0].column, "missing", "add --"+o.name+"=", "%s lacks --%s", name, o.name)
		}
	}
	if g.has("hostname") {
		c.seen[name+" --hostname"] = true
	}
	c.rules(known, words[0], g)
}

// options checks the options of a command, and returns their values.
func (c *checker) options(known *command, words []word) given {
	g := given{options: map[string]word{}}
	for i := 0; i < len(words); i++ {
		at := words[i]
		text, isOption := strings.CutPrefix(at.text, "--")
		if !isOption || text == "" || known.takesAll {
			g.words = append(g.words, at)
			continue
		}
		name, value, hasValue := strings.Cut(text, "=")
		o := known.find(name, c.at)
		switch {
		case o == nil:
			c.fail(at.line, at.column, "unknown-option", nearest("--"+name, c.known(known)), "--%s is no option of %s", cut(name), known.name)
			continue
		case !o.in.has(c.at):
			c.fail(at.line, at.column, "other-release", "take it out", "%s does not know the option --%s of %s", c.os(), o.name, known.name)
		case o.passed.has(c.at):
			c.warn(at.line, at.column, "deprecated", "take it out", "%s passes over the option --%s of %s, or soon will", c.os(), o.name, known.name)
		case hasValue && !o.hasValue:
			c.fail(at.line, at.column, "bad-value", "write --"+o.name+" alone", "--%s of %s takes no value", o.name, known.name)
		}
		g.options[o.name] = word{value, at.line, at.column}
		if o.hasValue && !hasValue {
			if i+1 == len(words) || strings.HasPrefix(words[i+1].text, "--") {
				c.fail(at.line, at.column, "bad-value", "write --"+o.name+"=VALUE", "--%s of %s has no value", o.name, known.name)
				delete(g.options, o.name)
				continue
			}
			i++
			g.options[o.name] = words[i]
		}
	}
	return g
}

// known returns the options of a command that this release knows.
func (c *checker) known(k *command) (out []string) {
	for _, o := range k.options {
		if o.in.has(c.at) {
			out = append(out, "--"+o.name)
		}
	}
	return out
}

var cut = installer.Cut

// nearest is a hint that names a known word which differs in one or two letters.
func nearest(word string, known []string) string {
	if best := docschema.Nearest(word, known); best != "" {
		return "did you mean " + best + "?"
	}
	if strings.HasPrefix(word, "--") && len(known) > 0 && len(known) <= 12 {
		return "its options are " + strings.Join(known, " ")
	}
	return "see the list of commands in the documentation of kickstart"
}

// ignored are the parts of the configuration that are next to the document and are not added to it.
func (w *writer) ignored() []string { return installer.Ignored(w.c) }
