package kickstart

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// withoutRaw takes the markers out of a text whose values are put in as they are.
func withoutRaw(text string) string {
	var b strings.Builder
	last := 0
	for _, m := range late.RawMarkers(text) {
		b.WriteString(text[last:m[0]])
		last = m[1]
	}
	return b.String() + text[last:]
}

// file writes text to a path in the installed system; owner and group are root when empty. at is its place in the
// configuration.
func (w *writer) file(p string, mode machineconfig.Mode, owner, group, text, at string) {
	w.content(p, text, ">", at)
	w.attributes(p, mode.Or(0o644), owner, group)
}

func (w *writer) attributes(p string, mode machineconfig.Mode, owner, group string) {
	if owner+group != "" {
		w.postLine("chown -h -- " + ownership(owner, group) + " " + shWord(p))
	}
	w.postLine("chmod -- " + mode.String() + " " + shWord(p))
}

func ownership(owner, group string) string {
	owner = cmp.Or(owner, "root")
	group = cmp.Or(group, "root")
	return shWord(owner + ":" + group)
}

// content writes text so that the file has exactly its bytes, and shows it to people where that is safe. Anaconda ends
// a script at a line that starts with a section's name, so such lines, and all that is not text, go as base64; a late
// value is always handed over as base64 of itself, for nobody knows what lines it has.
func (w *writer) content(p, text, redirect, at string) {
	to := redirect + " " + shWord(p)
	if dir := path.Dir(p); dir != "/" {
		w.postLine("mkdir -p -- " + shWord(dir))
	}
	encoded := late.HasMarker(withoutRaw(text))
	switch {
	case encoded && (!isShowable(text) || !strings.HasSuffix(text, "\n")):
		w.report.Errorf(at, "not-expressible", "has a late value in a quoted place, and a line that starts with %% or no line break at its end").
			Hint = "write such a command as a file and run that"
	case encoded:
		w.heredoc("cat "+to, text, p)
	case !late.HasMarker(text):
		w.plain(to, text, p)
	default:
		w.postLine("{")
		rest := text
		for _, m := range late.RawMarkers(text) {
			start := m[0] - (len(text) - len(rest))
			w.piece(rest[:start], p)
			rest = text[m[1]:]
			w.postLine("base64 -d <<< '" + late.Retag(text[m[0]:m[1]], late.Base64) + "'")
		}
		w.piece(rest, p)
		w.postLine("} " + to)
	}
}

func (w *writer) piece(text, seed string) {
	if text != "" {
		w.plain("", text, seed)
	}
}

// plain writes text without late values to a redirection.
func (w *writer) plain(to, text, seed string) {
	gap := ""
	if to != "" {
		gap = " "
	}
	switch {
	case text == "":
		w.postLine(":" + gap + to)
	case !isShowable(text):
		w.heredoc("base64 -d"+gap+to, wrap(base64.StdEncoding.EncodeToString([]byte(text))), seed)
	case !strings.Contains(text, "\n"):
		w.postLine("printf '%s' " + shWord(text) + gap + to)
	case strings.HasSuffix(text, "\n"):
		w.heredoc("cat"+gap+to, text, seed)
	default:
		cut := strings.LastIndexByte(text, '\n') + 1
		w.postLine("{")
		w.heredoc("cat", text[:cut], seed)
		w.postLine("printf '%s' "+shWord(text[cut:]), "}"+gap+to)
	}
}

// heredoc feeds text, which ends a line, to a command. The end word is made from the text, so that no line is it.
func (w *writer) heredoc(command, text, seed string) {
	sum := sha256.Sum256([]byte(seed + "\x00" + text))
	end := "SLIPWAY_" + hex.EncodeToString(sum[:6])
	w.postLine(command+" << '"+end+"'", strings.TrimSuffix(text, "\n"), end)
}

// isShowable reports whether text may be in a section as it is.
func isShowable(text string) bool {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r < 0x20 && r != '\n' && r != '\t' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
	}) {
		return false
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "%") {
			return false
		}
	}
	return true
}

// wrap breaks base64 into lines of 76.
func wrap(s string) string {
	var b strings.Builder
	for len(s) > 76 {
		b.WriteString(s[:76] + "\n")
		s = s[76:]
	}
	return b.String() + s + "\n"
}

// text is the content of a file that needs no fetching; binary reports that it was given as base64.
func (w *writer) text(f *machineconfig.File) (text string, ok bool) {
	at := pointer.Of("files", f.Path)
	switch {
	case f.Remote != nil:
		return "", false
	case f.Secret != "":
		return late.Marker(f.Secret), true
	case f.Base64 != "":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(f.Base64), ""))
		if err != nil {
			w.report.Errorf(at+"/base64", "bad-base64", "is not base64: %v", err).Hint = "encode it with: base64 -w0 FILE"
		}
		return string(b), true
	}
	return f.Text, true
}

// place writes a file of the configuration, or of the bootstrapper. What is under /run is staged, and put there at
// every boot by systemd-tmpfiles, until cleanup takes the stage away.
func (w *writer) place(f *machineconfig.File, stage string) {
	at := pointer.Of("files", f.Path)
	p, redirect := f.Path, ">"
	if f.IsVolatile() {
		p = stage + f.Path
		w.tmpfile(f, p)
	}
	if f.Append {
		redirect = ">>"
		if f.IsVolatile() {
			w.report.Errorf(at+"/append", "not-expressible", "adds to a file that is made again at every boot").
				Hint = "give its whole content"
		}
	}
	if text, ok := w.text(f); ok {
		w.content(p, text, redirect, at)
	} else {
		w.fetch(f.Remote, p, redirect)
	}
	if f.Append && f.Mode == 0 && f.Owner+f.Group == "" {
		return
	}
	mode, owner, group := f.Mode.Or(0o644), f.Owner, f.Group
	if f.IsVolatile() {
		mode, owner, group = 0o600, "", ""
	}
	w.attributes(p, mode, owner, group)
}

func (w *writer) fetch(r *machineconfig.Remote, p, redirect string) {
	w.postLine("mkdir -p -- "+shWord(path.Dir(p)), "curl -fsSL --retry 5 --retry-connrefused -o /root/slipway.part -- "+shWord(r.URL))
	if r.SHA256 != "" {
		w.postLine("echo " + shWord(strings.ToLower(r.SHA256)+"  /root/slipway.part") + " | sha256sum -c --quiet -")
	}
	w.postLine("cat /root/slipway.part "+redirect+" "+shWord(p), "rm -f /root/slipway.part")
}

// tmpfile adds the line that puts a staged file in its place.
func (w *writer) tmpfile(f *machineconfig.File, staged string) {
	name := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(percents(s)) + `"`
	}
	owner, group := cmp.Or(f.Owner, "root"), cmp.Or(f.Group, "root")
	if dir := path.Dir(f.Path); dir != "/run" && dir != "/tmp" && dir != "/dev" {
		w.tmpfiles = append(w.tmpfiles, fmt.Sprintf("d %s 0755 root root -", name(dir)))
	}
	w.tmpfiles = append(w.tmpfiles, fmt.Sprintf("C %s %s %s %s - %s", name(f.Path), f.Mode.Or(0o644), owner, group, percents(staged)))
}

// percents doubles what systemd would expand. The source of a copy is the rest of its line, without quotes.
func percents(s string) string { return strings.ReplaceAll(s, "%", "%%") }
