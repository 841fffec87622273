package cloudinit

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/docschema"
	"slipway.dev/slipway/machineconfig/late"
)

const jinjaHeader = "## template: jinja"

var jinjaRE = regexp.MustCompile(`(?i)^##\s*template:\s*jinja\s*(\r?\n|$)`)

// document returns the part that holds the profile's own document, nil if it has none. It checks the bootstrap secret's
// format as well, since that is the other part that is not ours.
func (w *render) document() *part {
	if p := w.prelude(); p != nil && p.Format != string(inventory.DocCloudConfig) {
		w.r.Errorf("/bootstrap/prelude", "not-expressible", "is %s, and cloud-init reads cloud-config only", p.Format).
			Hint = "boot an image that reads Ignition, or let the bootstrap provider write cloud-config"
	}
	if p := w.prelude(); p != nil && !isASCII(string(p.Data)) && late.HasMarker(string(p.Data)) {
		w.r.Errorf("/bootstrap/prelude", "not-ascii", "mixes secrets with characters that cloud-init reads wrongly in a message of several parts").
			Hint = "give the whole document as one secret"
	}
	d := w.c.Document
	if d == nil {
		return nil
	}
	if d.Format != string(inventory.DocCloudConfig) {
		w.r.Errorf("", "document-format", "the profile's document is %s, and cloud-init reads cloud-config only", d.Format).
			Hint = "choose an image that reads it, or write the document as cloud-config"
		return nil
	}
	body, findings := CheckDocument(tool(w.t), d.Data)
	w.r = append(w.r, findings...)
	isJinja := d.Jinja || jinjaRE.MatchString(body)
	if !findings.HasErrors() {
		text, line, _, _ := split(strings.ReplaceAll(string(d.Data), "\r\n", "\n"))
		w.compare(text, line-1)
	}
	if isJinja && !jinjaRE.MatchString(body) {
		body = jinjaHeader + "\n" + body
	}
	return &part{contentType: mimeType(isJinja), name: "document.yaml", body: body}
}

// CheckDocument checks a user's cloud-config for a version of cloud-init. It returns it with its markers of late values
// quoted as YAML needs it. Findings carry the line and column in Source.
func CheckDocument(version string, data []byte) (string, machineconfig.Report) {
	var r machineconfig.Report
	fail := func(line, column int, code, message, hint string) {
		f := r.Errorf("", code, "%s", message)
		f.Source, f.Hint = fmt.Sprintf("document:%d:%d", line, column), hint
	}
	if strings.HasPrefix(string(data), "\x1f\x8b") {
		_, line, wrong, hint := split(string(data))
		fail(line, 1, "header", wrong, hint)
		return "", r
	}
	if line, column, what, hint := machineconfig.TextFault(string(data)); line > 0 {
		fail(line, column, "encoding", what, hint)
		return "", r
	}
	text, line, wrong, hint := split(strings.ReplaceAll(string(data), "\r\n", "\n"))
	if wrong != "" {
		fail(line, 1, "header", wrong, hint)
		return text, r
	}
	isJinja := jinjaRE.MatchString(text)
	body := text
	if isJinja {
		_, body, _ = strings.Cut(text, "\n")
		var skipped int
		body, skipped, wrong, hint = split(body)
		if line += skipped; wrong != "" || !isConfig(body) {
			fail(line, 1, "header", cmp.Or(wrong, "is a template of a template"), cmp.Or(hint, needsHeader))
			return text, r
		}
	}
	parse := body
	if isJinja {
		if late.HasMarker(text) {
			fail(1, 1, "late-in-jinja", "is a jinja template and holds a secret, whose text jinja would take for its own",
				"give the secret in a file of the profile's configuration")
		}
		parse = blankJinja(body)
	}
	if second := machineconfig.SecondDocument(parse); second > 0 {
		fail(second+line-1, 1, "second-document", "begins a second YAML document, and cloud-init refuses both", "put both into one document, without ---")
		return text, r
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(parse), &doc); err != nil {
		n, msg := yamlError(err)
		fail(n+line-1, 1, "yaml", "is not YAML: "+msg, "")
		return text, r
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	if doc.Kind == 0 || root.Tag == "!!null" {
		return text, r
	}
	if root.Kind != yaml.MappingNode {
		fail(root.Line+line-1, root.Column, "yaml", "is not a mapping of keys", "write key: value lines")
		return text, r
	}
	checkKeys(version, root, line-1, fail)
	checkMerge(root, line-1, fail)
	if isJinja {
		r = append(r, unsaid(r, checkTemplate(root, line-1, strings.Contains(body, "{%")))...)
	} else {
		r = append(r, unsaid(r, CheckConfig(root, line-1))...)
	}
	if isJinja || !late.HasMarker(text) {
		return text, r
	}
	return quoteLate(&doc, text, fail), r
}

// checkKeys finds keys of the top level that this version does not know; cloud-init drops them in silence.
func checkKeys(version string, root *yaml.Node, offset int, fail func(line, column int, code, message, hint string)) {
	seen := map[string]int{}
	known := KnownKeys(version)
	for i := 0; i+1 < len(root.Content); i += 2 {
		k := root.Content[i]
		if first, ok := seen[k.Value]; ok {
			fail(k.Line+offset, k.Column, "duplicate", fmt.Sprintf("has the key %s twice: first on line %d", clip(k.Value), first), "put both under one")
			continue
		}
		seen[k.Value] = k.Line + offset
		if _, ok := known[k.Value]; !ok {
			hint := "see the modules in cloud-init's documentation"
			if near := docschema.Nearest(k.Value, slices.Collect(maps.Keys(known))); near != "" {
				hint = "did you mean " + near + "?"
			}
			if since := keys[k.Value]; since != "" {
				hint = fmt.Sprintf("it needs cloud-init %s; this image has %s", since, version)
			}
			fail(k.Line+offset, k.Column, "unknown-key", fmt.Sprintf("has the key %s, which cloud-init %s does not know", clip(k.Value), version), hint)
		}
	}
}

// quoteLate writes the document again, with every text that holds a marker in double quotes, and in ASCII: see transfer.
func quoteLate(doc *yaml.Node, text string, fail func(line, column int, code, message, hint string)) string {
	markLate(doc, 0)
	written, err := machineconfig.WriteYAML(doc)
	if err != nil {
		fail(1, 1, "yaml", "cannot be written again to hold a secret: "+err.Error(), "give the secret in a file of the profile's configuration")
		return text
	}
	out := strings.TrimPrefix(string(written), header)
	return header + late.Retag(ascii(out), late.JSONString)
}

func markLate(n *yaml.Node, depth int) {
	if depth > 100 {
		return // the parser refuses deeper documents
	}
	if n.Kind == yaml.ScalarNode && (late.HasMarker(n.Value) || !isASCII(n.Value)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, comment := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
		if late.HasMarker(*comment) || !isASCII(*comment) {
			*comment = ""
		}
	}
	for _, c := range n.Content {
		markLate(c, depth+1)
	}
}

var (
	jinjaStatement  = regexp.MustCompile(`(?m)^[ \t]*\{%.*%\}[ \t]*$`)
	jinjaInline     = regexp.MustCompile(`\{%.*?%\}`)
	jinjaExpression = regexp.MustCompile(`\{\{.*?\}\}`)
)

// blankJinja makes a template readable as YAML, with its lines where they were.
func blankJinja(s string) string {
	s = jinjaStatement.ReplaceAllString(s, "")
	s = jinjaInline.ReplaceAllString(s, "")
	return jinjaExpression.ReplaceAllString(s, "x")
}

var yamlLineRE = regexp.MustCompile(`line (\d+): (.*)`)

// yamlError returns the line of an error and what it says besides.
func yamlError(err error) (line int, msg string) {
	msg = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLineRE.FindStringSubmatch(msg); m != nil {
		_, _ = fmt.Sscan(m[1], &line) // the expression takes digits only
		return line, m[2]
	}
	return 1, msg
}

// isConfig reports whether a text is what cloud-init takes for a cloud-config.
func isConfig(body string) bool {
	return strings.HasPrefix(strings.ToLower(body[:min(len(body), len(configStart))]), configStart)
}

const configStart = "#cloud-config"

func clip(s string) string { return inventory.Clean(s, 60) }
