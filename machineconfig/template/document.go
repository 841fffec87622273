package template

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/quoting"
)

// warnDocument warns of values in a profile's document that may change more than their own place: in its commands, scripts and
// files, and free text in its YAML. A secret in the YAML itself is quoted by anyone who writes the format.
func (x *expander) warnDocument(format, text string, say sayer) {
	if len(x.values) == 0 {
		return
	}
	switch inventory.DocumentFormat(format) {
	case inventory.DocKickstart:
		for _, s := range sections(text) {
			x.warnWithin(s, text, say)
		}
	case inventory.DocPreseed:
		for _, at := range presetCommandRE.FindAllStringIndex(text, -1) {
			x.warnWithin(stretch{at[0], at[1], quoting.Shell}, text, say)
		}
	case inventory.DocCloudConfig, inventory.DocAutoinstall, inventory.DocButane, inventory.DocTalos:
		x.warnYAML(text, say)
	}
}

// stretch is a part of a text, and who reads it.
type stretch struct {
	start, end int
	kind       quoting.Kind
}

// warnWithin warns of the values in a part of a text.
func (x *expander) warnWithin(s stretch, text string, say sayer) {
	var values []quoting.Value
	var shown []int
	for i, v := range x.values {
		if s.start <= v.Start && v.End <= s.end {
			values, shown = append(values, v), append(shown, x.shown[i])
		}
	}
	x.warnRaw(s.kind, text, values, shown, say)
}

// presetCommandRE finds a command in a preseed file, with the lines that continue it.
var presetCommandRE = regexp.MustCompile(`(?m)^[ \t]*[^#\s]\S*[ \t]+\S*_command[ \t](?:.*\\\n)*.*$`)

var (
	sectionRE     = regexp.MustCompile(`^%(pre|pre-install|post|onerror|traceback)(\s|$)`)
	interpreterRE = regexp.MustCompile(`--interpreter[= ]["']?([^\s"']+)`)
)

// sections returns the scripts of a kickstart file.
func sections(text string) (all []stretch) {
	at, open := 0, stretch{start: -1}
	for line := range strings.Lines(text) {
		switch {
		case open.start < 0 && sectionRE.MatchString(line):
			open = stretch{start: at + len(line), kind: quoting.Shell}
			if m := interpreterRE.FindStringSubmatch(line); m != nil {
				open.kind = quoting.OfInterpreter(m[1])
			}
		case open.start >= 0 && strings.TrimSpace(line) == "%end":
			open.end = at
			all, open = append(all, open), stretch{start: -1}
		}
		at += len(line)
	}
	if open.start >= 0 {
		open.end = len(text)
		all = append(all, open)
	}
	return all
}

// The letters of a private area that stand around values in a copy of a YAML text, so that they are found in its tree.
const (
	valueStart = '\ue000'
	valueIndex = '\ue001'
	valueEnd   = '\ue002'
)

// commandKeys are the lists of commands of cloud-config and autoinstall.
var commandKeys = []string{"runcmd", "bootcmd", "early-commands", "late-commands", "error-commands"}

// warnYAML looks for the values of a document in its tree.
func (x *expander) warnYAML(text string, say sayer) {
	if strings.ContainsAny(text, string([]rune{valueStart, valueIndex, valueEnd})) {
		return
	}
	var b strings.Builder
	last := 0
	for i, v := range x.values {
		if v.Start < last || v.Quote == "json" || v.Quote == "quote" {
			continue
		}
		b.WriteString(text[last:v.Start] + string(valueStart) + strconv.Itoa(i) + string(valueIndex) + text[v.Start:v.End] + string(valueEnd))
		last = v.End
	}
	b.WriteString(text[last:])
	var doc yaml.Node
	w := &yamlWalker{x: x, say: say, isBlock: map[int]bool{}}
	if yaml.Unmarshal([]byte(b.String()), &doc) == nil {
		w.walk(&doc, "", 0)
	}
	var values []quoting.Value
	var shown []int
	for i, v := range x.values {
		if v.IsSecret || w.isBlock[i] && !strings.Contains(text[v.Start:v.End], "\n") {
			continue
		}
		values, shown = append(values, v), append(shown, x.shown[i])
	}
	x.warnRaw(quoting.YAML, text, values, shown, say)
}

// yamlWalker goes through the tree of a document once.
type yamlWalker struct {
	x       *expander
	say     sayer
	visits  int
	isBlock map[int]bool // values that are in a block of lines
}

const maxYAMLVisits = 100_000

func (w *yamlWalker) walk(n *yaml.Node, key string, depth int) {
	if w.visits++; w.visits > maxYAMLVisits || depth > 100 {
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			_, values, _ := w.values(n.Value)
			for _, i := range values {
				w.isBlock[i] = true
			}
		}
	case yaml.SequenceNode:
		if slices.Contains(commandKeys, key) {
			for _, c := range n.Content {
				w.command(c)
			}
		}
	case yaml.MappingNode:
		w.file(n)
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.walk(n.Content[i+1], n.Content[i].Value, depth+1)
		}
		return
	}
	for _, c := range n.Content {
		w.walk(c, "", depth+1)
	}
}

// command looks at one command: a text is for a shell, and so is what follows sh -c.
func (w *yamlWalker) command(n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode:
		w.check(quoting.Shell, n.Value)
	case n.Kind == yaml.SequenceNode && len(n.Content) > 2 && n.Content[1].Value == "-c" && quoting.OfInterpreter(n.Content[0].Value) == quoting.Shell:
		w.check(quoting.Shell, n.Content[2].Value)
	}
}

// file looks at what has a path or name and content: files of cloud-config, Butane and Talos, units of Butane.
func (w *yamlWalker) file(n *yaml.Node) {
	field := func(n *yaml.Node, keys ...string) *yaml.Node {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if slices.Contains(keys, n.Content[i].Value) {
				return n.Content[i+1]
			}
		}
		return &yaml.Node{}
	}
	content := field(n, "content", "contents")
	if content.Kind == yaml.MappingNode {
		content = field(content, "inline")
	}
	if name := field(n, "path", "name").Value; name != "" && content.Kind == yaml.ScalarNode {
		text, _, _ := w.values(content.Value)
		w.check(quoting.OfFile(name, text), content.Value)
	}
}

func (w *yamlWalker) check(kind quoting.Kind, marked string) {
	text, indexes, values := w.values(marked)
	shown := make([]int, len(indexes))
	for i, index := range indexes {
		shown[i] = w.x.shown[index]
	}
	w.x.warnRaw(kind, text, values, shown, w.say)
}

// values returns a text without the letters around its values, which values they are, and where they stand.
func (w *yamlWalker) values(marked string) (text string, indexes []int, values []quoting.Value) {
	var b strings.Builder
	for rest := marked; rest != ""; {
		before, after, ok := strings.Cut(rest, string(valueStart))
		b.WriteString(strings.ReplaceAll(before, string(valueEnd), ""))
		if !ok {
			break
		}
		number, after, _ := strings.Cut(after, string(valueIndex))
		value, after, _ := strings.Cut(after, string(valueEnd))
		rest = after
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(w.x.values) {
			continue
		}
		v := w.x.values[i]
		v.Start = b.Len()
		b.WriteString(value)
		v.End = b.Len()
		indexes, values = append(indexes, i), append(values, v)
	}
	return b.String(), indexes, values
}

// unquoteLate takes json's encoding from the secrets that are a whole string of a YAML or JSON document: the document is
// read, which ends the quotes, and written again, which encodes them again.
func unquoteLate(format, text string) string {
	all := late.CountJSON(text)
	if all == 0 {
		return text
	}
	switch inventory.DocumentFormat(format) {
	case inventory.DocIgnition:
		out, _ := late.UnquoteJSON(text, all)
		return out
	case inventory.DocCloudConfig, inventory.DocAutoinstall, inventory.DocButane, inventory.DocTalos:
	default:
		return text
	}
	var doc yaml.Node
	if yaml.Unmarshal([]byte(text), &doc) != nil {
		return text // anyone who reads it next says so
	}
	lines := strings.SplitAfter(text, "\n")
	for _, n := range slices.Backward(doubleQuoted(&doc, nil, 0)) {
		if n.Line < 1 || n.Line > len(lines) {
			continue
		}
		rest := lines[n.Line-1]
		cut := 0
		for range n.Column - 1 {
			_, size := utf8.DecodeRuneInString(rest[cut:])
			cut += size
		}
		// The string may go on over lines; no other marker stands before its own.
		left := late.CountJSON(n.Value)
		for i := n.Line - 1; i < len(lines) && left > 0; i++ {
			tail, found := late.UnquoteJSON(lines[i][cut:], left)
			lines[i], left = lines[i][:cut]+tail, left-found
			cut = 0
		}
	}
	return strings.Join(lines, "")
}

// doubleQuoted returns the strings in double quotes that hold markers of json, in their order.
func doubleQuoted(n *yaml.Node, all []*yaml.Node, depth int) []*yaml.Node {
	if depth > 100 {
		return all
	}
	if n.Kind == yaml.ScalarNode && n.Style&yaml.DoubleQuotedStyle != 0 && late.CountJSON(n.Value) > 0 {
		all = append(all, n)
	}
	for _, c := range n.Content {
		all = doubleQuoted(c, all, depth+1)
	}
	return all
}
