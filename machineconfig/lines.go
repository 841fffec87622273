package machineconfig

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// Line is a line of a configuration as it is after all layers.
type Line struct {
	Text string `json:"text"`
	From string `json:"from,omitempty"` // the layer and its line that said so; "" for lines that only hold others
}

// Lines writes a configuration as YAML, each line with the layer that said it. Late values stay references.
func (c *Config) Lines() ([]Line, error) {
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	text = late.Redact(text)
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read configuration as it was written: %w", err)
	}
	var lines []Line
	for l := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		lines = append(lines, Line{Text: l})
	}
	w := lineWalk{lines: lines, from: c.Provenance}
	for _, n := range doc.Content {
		w.walk(n, "", "")
	}
	// A text of several lines has its node on the first of them.
	last := ""
	for i := range lines {
		if isText := lines[i].From == "" && !strings.HasSuffix(strings.TrimSpace(lines[i].Text), ":") && last != ""; isText {
			lines[i].From = last
		}
		last = lines[i].From
	}
	return lines, nil
}

type lineWalk struct {
	lines []Line
	from  map[string]string
}

// walk notes for each value on which line it stands and where it is from; above is where what holds it is from.
func (w lineWalk) walk(n *yaml.Node, path, above string) {
	from := above
	if said := w.from[path]; said != "" {
		from = said
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			at := pointer.Add(path, key.Value)
			said := w.from[at]
			if value.Kind == yaml.ScalarNode && said == "" {
				said = from
			}
			w.note(key.Line, said)
			w.walk(value, at, from)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			w.walk(item, pointer.Add(path, lineKey(item, i)), from)
		}
	case yaml.ScalarNode:
		w.note(n.Line, from)
	}
}

func (w lineWalk) note(line int, from string) {
	if i := line - 1; i >= 0 && i < len(w.lines) && w.lines[i].From == "" {
		w.lines[i].From = from
	}
}

// lineKey is how Provenance names an item of a list: by its key, or its number.
func lineKey(item *yaml.Node, i int) string {
	values := map[string]string{}
	for k := 0; item.Kind == yaml.MappingNode && k+1 < len(item.Content); k += 2 {
		values[item.Content[k].Value] = item.Content[k+1].Value
	}
	if to := values["to"]; to != "" {
		if metric := values["metric"]; metric != "" {
			return to + "@" + metric
		}
		return to
	}
	for _, k := range []string{"name", "path", "label", "device", "id", "url"} {
		if v := values[k]; v != "" {
			return v
		}
	}
	return fmt.Sprint(i)
}

// WriteYAML writes documents with two columns for each level, and lines between them.
func WriteYAML(docs ...any) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, d := range docs {
		if err := e.Encode(d); err != nil {
			return nil, err
		}
	}
	err := e.Close()
	return b.Bytes(), err
}
