package kickstart

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"slipway.dev/slipway/autoinstall/installer"
)

// sections are those that Anaconda knows; each ends with %end.
var sections = []string{"%packages", "%pre", "%pre-install", "%post", "%onerror", "%traceback", "%addon", "%anaconda", "%certificate"}

// commands are those that Anaconda knows, over all releases from Enterprise Linux 8 and Fedora 38.
var commands = strings.Fields(`
	auth authconfig authselect autopart autostep bootc bootloader btrfs cdrom clearpart cmdline driverdisk eula fcoe
	firewall firstboot graphical group halt harddrive hmc ignoredisk install iscsi iscsiname keyboard lang liveimg logging
	logvol mediacheck method module mount multipath network nfs nvdimm ostreecontainer ostreesetup part partition poweroff
	raid rdp realm reboot repo reqpart rescue rhsm rootpw selinux services shutdown skipx snapshot sshkey sshpw syspurpose
	text timesource timezone updates url user vnc volgroup xconfig zerombr zfcp zipl`)

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
		w.report.Warnf(u, "ignored", "is not added to the profile's own kickstart file").Hint = "write it in the file, or leave the document out"
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
		if len(words) > 0 && (slices.Contains(sections, words[0]) || words[0] == "%end") {
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

// checkDocument reports what Anaconda would refuse, with the line, and returns the commands that were seen.
func (w *writer) checkDocument(text string) map[string]bool {
	seen := map[string]bool{}
	section, opened, n := "", 0, 0
	at := func(line int, code, hint, format string, args ...any) {
		f := w.report.Errorf("/document", code, format, args...)
		f.Source, f.Hint = fmt.Sprintf("document:%d:1", line), hint
	}
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		first := words[0]
		switch {
		case first == "%end" && section == "":
			at(n, "unbalanced", "take it out, or write the section before it", "%%end closes no section")
		case first == "%end":
			section = ""
		case slices.Contains(sections, first):
			if section != "" {
				at(opened, "unclosed", "write %end after its last line", "%s has no %%end before the next section", section)
			}
			section, opened = first, n
		case section != "" || first == "%include" || first == "%ksappend":
		case strings.HasPrefix(first, "%"):
			at(n, "unknown-section", "use one of "+strings.Join(sections, " "), "%s is not a section of kickstart", cut(first))
		case !slices.Contains(commands, first):
			at(n, "unknown-command", nearest(first, commands), "%s is not a command of kickstart", cut(first))
		default:
			seen[first] = true
			if strings.Contains(line, "--hostname") {
				seen[first+" --hostname"] = true
			}
		}
	}
	if section != "" {
		at(opened, "unclosed", "write %end after its last line", "%s has no %%end", section)
	}
	return seen
}

func cut(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// nearest is a hint that names a known word which differs in one or two letters.
func nearest(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := installer.Distance(word, k, distance); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return "see the list of commands in the documentation of kickstart"
	}
	return "did you mean " + best + "?"
}

// ignored are the parts of the configuration that stand beside the document and are not added to it.
func (w *writer) ignored() []string { return installer.Ignored(w.c) }
