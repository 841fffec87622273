package ignition

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// twice finds a key that stands twice in one JSON object, and where it stands again. Parsers take the last in silence, so
// that what the first says is lost.
func twice(doc []byte) (key, source string) {
	type level struct {
		keys     map[string]bool // nil for a list
		isBehind bool            // the next text is a value
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var open []level
	for {
		tok, err := d.Token()
		if err != nil { // the end, or what the parser will name
			return "", ""
		}
		top := len(open) - 1
		isKey := top >= 0 && open[top].keys != nil && !open[top].isBehind
		switch text, isText := tok.(string); {
		case tok == json.Delim('}') || tok == json.Delim(']'):
			open = open[:top]
			continue
		case isKey && isText && open[top].keys[text]:
			at := doc[:int(d.InputOffset())-1]
			column := len(at) - bytes.LastIndexByte(at, '\n') - len(text) - 1
			return text, fmt.Sprintf("document:%d:%d", 1+bytes.Count(at, []byte("\n")), max(1, column))
		case isKey && isText:
			open[top].keys[text], open[top].isBehind = true, true
			continue
		case top >= 0:
			open[top].isBehind = false
		}
		switch tok {
		case json.Delim('{'):
			open = append(open, level{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		}
	}
}
