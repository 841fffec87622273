package render

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// documentAt begins the rows of a configuration's provenance that are about the profile's own document.
const documentAt = "/document"

// maxRows bounds the rows of one document.
const maxRows = 1000

// documentRows says where each value of a profile's own document stands: a path to the line and column. It reads no meaning.
func documentRows(origin string, format inventory.DocumentFormat, text string) map[string]string {
	rows := &rowWriter{origin: origin, rows: map[string]string{}}
	switch format {
	case inventory.DocKickstart:
		rows.kickstart(text)
	case inventory.DocPreseed:
		rows.preseed(text)
	default:
		var doc yaml.Node
		if yaml.Unmarshal([]byte(text), &doc) == nil {
			rows.node(&doc, documentAt, 0)
		}
	}
	return rows.rows
}

type rowWriter struct {
	origin string
	rows   map[string]string
}

func (w *rowWriter) add(path string, line, column int) {
	for n := 2; w.rows[path] != ""; n++ { // the same thing again
		if at := fmt.Sprintf("%s/%d", path, n); w.rows[at] == "" {
			path = at
		}
	}
	if len(w.rows) < maxRows {
		w.rows[path] = fmt.Sprintf("%s, document:%d:%d", w.origin, line, column)
	}
}

// node adds the leaves of a tree. What an alias stands for has its rows where it stands.
func (w *rowWriter) node(n *yaml.Node, path string, depth int) {
	if depth > 100 || len(w.rows) >= maxRows {
		return
	}
	switch n.Kind {
	case yaml.DocumentNode:
		for _, c := range n.Content {
			w.node(c, path, depth+1)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.node(n.Content[i+1], pointer.Add(path, clean(n.Content[i].Value)), depth+1)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			w.node(c, pointer.Add(path, itemName(c, i)), depth+1)
		}
	default:
		w.add(path, n.Line, n.Column)
	}
}

// itemName is how a list names an item: by its name or path, else by its number.
func itemName(n *yaml.Node, i int) string {
	for k := 0; n.Kind == yaml.MappingNode && k+1 < len(n.Content); k += 2 {
		if key := n.Content[k].Value; (key == "name" || key == "path") && n.Content[k+1].Kind == yaml.ScalarNode {
			return clean(n.Content[k+1].Value)
		}
	}
	return fmt.Sprint(i)
}

func clean(key string) string { return inventory.Clean(key, 100) }

// kickstart adds a row for each command, and for each section.
func (w *rowWriter) kickstart(text string) {
	n, isSection := 0, false
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		switch {
		case words[0] == "%end":
			isSection = false
		case !isSection:
			isSection = strings.HasPrefix(words[0], "%") && words[0] != "%include" && words[0] != "%ksappend"
			w.add(pointer.Add(documentAt, clean(words[0])), n, 1+strings.Index(line, words[0]))
		}
	}
}

// preseed adds a row for each question; a line that goes on is one.
func (w *rowWriter) preseed(text string) {
	n, goesOn := 0, false
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) >= 2 && !goesOn && !strings.HasPrefix(words[0], "#") {
			w.add(pointer.Add(documentAt, clean(words[1])), n, 1)
		}
		goesOn = strings.HasSuffix(strings.TrimRight(line, " \t\r\n"), `\`)
	}
}

// explain puts the rows of a document into the provenance. What does not count says so: see overrule.
func explain(c *machineconfig.Config, p *inventory.Profile, text string) {
	if c.Provenance == nil {
		return
	}
	for path, at := range documentRows("profile "+p.Name, p.Document.Format, text) {
		c.Provenance[path] = at
	}
}

// overrule marks the rows of what a document says and something narrower says otherwise.
func overrule(c *machineconfig.Config, findings machineconfig.Report) {
	at := map[string]string{}
	for _, f := range findings {
		if f.Code == "overridden" && strings.HasPrefix(f.Source, "document:") {
			at[f.Source] = f.Message
		}
	}
	if len(at) == 0 {
		return
	}
	for path, row := range c.Provenance {
		if !strings.HasPrefix(path, documentAt+"/") {
			continue
		}
		_, source, _ := strings.Cut(row, ", ")
		message := at[source]
		if line, _, _ := strings.Cut(strings.TrimPrefix(source, "document:"), ":"); message == "" {
			message = onLine(at, line, path)
		}
		if message != "" {
			c.Provenance[path] = row + "; does not count: " + message
		}
	}
}

// onLine finds what was said of a command of kickstart, whose option is what does not count.
func onLine(at map[string]string, line, path string) string {
	if !strings.HasPrefix(path, documentAt+"/network") {
		return ""
	}
	for source, message := range at {
		if strings.HasPrefix(source, "document:"+line+":") && strings.Contains(message, "--hostname") {
			return message
		}
	}
	return ""
}
