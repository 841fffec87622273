package preseed

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig/late"

	"slipway.dev/slipway/installer"
)

// types are those of debconf's questions.
var types = []string{"string", "password", "boolean", "select", "multiselect", "note", "text", "title", "error", "seen"}

// document checks a profile's own preseed file and adds what Slipway needs to know of it: the host name, if the file
// has none, and the report, after the file's own late command. The rest of the configuration is not added.
func (w *writer) document(text string) {
	own := w.check(text)
	theirs := "" // the late command of the file
	for _, l := range logical(text) {
		question, value := questionOf(l.text)
		switch {
		case question == "preseed/late_command":
			theirs = value // the last one counts, as for the installer
		case w.isOverridden(l, question, value):
		default:
			w.lines = append(w.lines, l.raw)
		}
	}
	w.comment("Added by Slipway")
	if h := w.c.Host; h.Hostname != "" {
		w.answer("/host/hostname", "netcfg/get_hostname", "string", h.Hostname)
		w.answer("/host/hostname", "netcfg/hostname", "string", h.Hostname)
		if h.Domain != "" {
			w.answer("/host/domain", "netcfg/get_domain", "string", h.Domain)
		}
	}
	if !own["finish-install/reboot_in_progress"] {
		w.answer("", "finish-install/reboot_in_progress", "note", "")
	}
	if report := installer.Wget.Report(w.c, "installed", installer.Tries); report != "" {
		if theirs != "" {
			// A shell of its own, as the installer would run it: whatever ends the command ends nothing of ours.
			w.late = append(w.late, "sh -c "+late.ShellWord(theirs))
		}
		w.late = append(w.late, "{ "+report+" || true; }")
	} else if theirs != "" {
		w.late = append(w.late, theirs)
	}
	w.lateCommand()
	for _, p := range installer.Ignored(w.c) {
		w.report.Warnf(p, "ignored", "is not added to the profile's own preseed file").
			Hint = "write it in the file, or leave the document out"
	}
}

var answerRE = regexp.MustCompile(`^\s*\S+\s+(\S+)\s+\S+(?:\s+(.*))?$`)

// questionOf returns which question a line answers, and the answer; blanks and tabs part the words alike.
func questionOf(text string) (question, value string) {
	m := answerRE.FindStringSubmatch(text)
	if m == nil || strings.HasPrefix(strings.TrimSpace(text), "#") {
		return "", ""
	}
	return m[1], strings.TrimSpace(m[2])
}

// isOverridden reports whether what is said of this host stands in place of an answer of the document, which speaks of
// all hosts of its profile.
func (w *writer) isOverridden(l line, question, value string) bool {
	want := map[string]string{
		"netcfg/get_hostname": w.c.Host.Hostname, "netcfg/hostname": w.c.Host.Hostname, "netcfg/get_domain": w.c.Host.Domain,
	}[question]
	if w.c.Host.Hostname == "" || want == "" {
		return false
	}
	if value != want {
		f := w.report.Warnf("/document", "overridden", "says %s, and %q of this host wins", question, want)
		f.Source, f.Hint = fmt.Sprintf("document:%d:1", l.n), "take it out of the document"
	}
	return true
}

// line is a line of a preseed file, with those that continue it.
type line struct {
	n         int    // of its first line
	raw, text string // as it is written, and joined as the installer joins it
	isOpen    bool   // the file ends in the middle of it
}

// logical splits a file into lines as Debian's installer does: comments and empty lines do not end a continued one.
func logical(text string) []line {
	var out []line
	var open *line
	n := 0
	for l := range strings.Lines(text) {
		n++
		l = strings.TrimRight(l, "\r\n")
		trimmed := strings.TrimSpace(l)
		if trimmed == "" || strings.HasPrefix(l, "#") {
			if open == nil {
				out = append(out, line{n: n, raw: l})
			}
			continue
		}
		body, more := strings.CutSuffix(strings.TrimLeft(l, " \t"), `\`)
		body = strings.TrimRight(body, " \t")
		if open == nil {
			out = append(out, line{n: n, raw: l, text: body})
		} else {
			open.raw += "\n" + l
			open.text += " " + body
		}
		open = nil
		if more {
			open = &out[len(out)-1]
		}
	}
	if open != nil {
		open.isOpen = true
	}
	return out
}

// check reports the lines that debconf would refuse or pass over, and returns the questions that are answered.
func (w *writer) check(text string) map[string]bool {
	own := map[string]bool{}
	lines := map[string]int{} // where a question was answered last
	for _, l := range logical(text) {
		fail := func(code, hint, format string, args ...any) {
			f := w.report.Errorf("/document", code, format, args...)
			f.Source, f.Hint = fmt.Sprintf("document:%d:1", l.n), hint
		}
		words := strings.Fields(l.text)
		const shape = "write OWNER QUESTION TYPE VALUE, such as: d-i time/zone string Etc/UTC"
		switch {
		case len(words) == 0:
		case l.isOpen:
			fail("open-line", "take the last backslash out", "the file ends in the middle of a line")
		case len(words) < 3:
			fail("short-line", shape, "has %d words; an answer has an owner, a question and a type", len(words))
		case strings.HasPrefix(words[0], "#"):
			fail("indented-comment", "write # at the start of the line", "is a comment that does not start its line, which the installer takes for an answer")
		case !slices.Contains(types, words[2]):
			fail("bad-type", "use one of "+strings.Join(types, " "), "%q is not a type of debconf", cut(words[2]))
		case words[2] == "boolean" && (len(words) != 4 || words[3] != "true" && words[3] != "false"):
			fail("bad-boolean", "write true or false", "is a boolean that is neither true nor false")
		default:
			own[words[1]] = true
			if words[2] != "seen" {
				w.lost(lines[words[1]], l.n, words[1])
				lines[words[1]] = l.n
			}
			if !strings.Contains(words[1], "/") {
				f := w.report.Warnf("/document", "odd-question", "%q has no slash, as nearly every question has", cut(words[1]))
				f.Source, f.Hint = fmt.Sprintf("document:%d:1", l.n), shape
			}
			if strings.Contains(l.text, `\n`) {
				f := w.report.Warnf("/document", "line-break", `holds \n, of which the installer makes a line break: it will see the first line only`)
				f.Source, f.Hint = fmt.Sprintf("document:%d:1", l.n), "use several commands, such as echo, instead"
			}
		}
	}
	return own
}

// lost says that an answer does not count, because the same question is answered again below it.
func (w *writer) lost(first, again int, question string) {
	if first == 0 {
		return
	}
	f := w.report.Warnf("/document", "answered-again", "%s is answered again on line %d, and the last answer counts", cut(question), again)
	f.Source, f.Hint = fmt.Sprintf("document:%d:1", first), "take one of them out"
	if strings.HasSuffix(question, "_command") {
		f.Hint = "write all commands in one answer, with ; or && between them"
	}
}

func cut(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
