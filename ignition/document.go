package ignition

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	v30 "github.com/coreos/ignition/v2/config/v3_0"
	v31 "github.com/coreos/ignition/v2/config/v3_1"
	v32 "github.com/coreos/ignition/v2/config/v3_2"
	v33 "github.com/coreos/ignition/v2/config/v3_3"
	v34 "github.com/coreos/ignition/v2/config/v3_4"
	v35 "github.com/coreos/ignition/v2/config/v3_5"
	v36 "github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/vcontext/report"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// document writes what was collected, merged over the profile's own document; nil if that cannot be done.
func (r *rendering) document() []byte {
	in, err := r.b.encode()
	if err != nil {
		r.report.Errorf("", "invalid", "%v", err)
		return nil
	}
	out, rpt, err := translate(in)
	rpt = withoutModeGuesses(rpt)
	addEntries(&r.report, rpt, r.place, false)
	if err != nil {
		if len(rpt.Entries) == 0 {
			r.report.Errorf("", "invalid", "Butane refuses it: %v", err)
		}
		return nil
	}
	if d := r.c.Document; d != nil {
		if out = r.mergeDocument(d, out); out == nil {
			return nil
		}
	}
	if out, err = finishDocument(out); err == nil {
		_, err = late.Inject(out, harmless) // a damaged marker is found here, not when the machine asks
	}
	if err != nil {
		r.report.Errorf("", "invalid", "%v", err)
		return nil
	}
	return out
}

// place finds the pointer that a place in the Butane document comes from.
func (r *rendering) place(at string) string {
	for at != "" {
		if p, ok := r.from[at]; ok {
			return p
		}
		i := strings.LastIndexByte(at, '.')
		if i < 0 {
			break
		}
		at = at[:i]
	}
	return ""
}

// merger merges a child over a parent, both of its spec or older ones.
type merger func(parent, child []byte) ([]byte, error)

func mergeAt[T any](parse func([]byte) (T, report.Report, error), merge func(T, T) T) merger {
	return func(parent, child []byte) ([]byte, error) {
		p, _, err := parse(parent)
		if err != nil {
			return nil, fmt.Errorf("read the profile's document: %w", err)
		}
		c, _, err := parse(child)
		if err != nil {
			return nil, fmt.Errorf("read the rendering: %w", err)
		}
		return json.Marshal(merge(p, c))
	}
}

var mergers = map[string]merger{
	"3.0.0": mergeAt(v30.ParseCompatibleVersion, v30.Merge), "3.1.0": mergeAt(v31.ParseCompatibleVersion, v31.Merge),
	"3.2.0": mergeAt(v32.ParseCompatibleVersion, v32.Merge), "3.3.0": mergeAt(v33.ParseCompatibleVersion, v33.Merge),
	"3.4.0": mergeAt(v34.ParseCompatibleVersion, v34.Merge), "3.5.0": mergeAt(v35.ParseCompatibleVersion, v35.Merge),
	"3.6.0": mergeAt(v36.ParseCompatibleVersion, v36.Merge),
}

// mergeDocument merges child over the admin's own document, at the newer of their specs.
func (r *rendering) mergeDocument(d *machineconfig.Passthrough, child []byte) []byte {
	parent := r.readDocument(d)
	if parent == nil {
		return nil
	}
	tool := cmp.Or(r.t.Tool, r.at.spec)
	spec := SpecOf(parent)
	if !CanRead(tool, spec) {
		f := r.report.Errorf("/document", "not-expressible", "needs %s, this image reads %s", short(spec), short(tool))
		f.Source, f.Hint = "document:1:1", "write the document in an older version, or boot an image with a newer Ignition"
		return nil
	}
	if Compare(r.at.spec, spec) > 0 {
		spec = r.at.spec
	}
	merge, ok := mergers[spec]
	if !ok {
		r.report.Errorf("/document", "not-expressible", "Ignition spec %s cannot be merged", spec)
		return nil
	}
	parent, err := r.withoutShadowed(parent, child)
	if err == nil {
		parent, err = merge(parent, child)
	}
	if err != nil {
		r.report.Errorf("/document", "invalid", "%v", err)
		return nil
	}
	return parent
}

// short is how people write a version of the spec: 3.4.
func short(spec string) string { return strings.TrimSuffix(spec, ".0") }

var lateSourceRE = regexp.MustCompile(`(source"?\s*:\s*["']?)(SLIPWAYLATE)`)

// readDocument returns the admin's document as Ignition 3.x; nil if it is wrong, which is reported by line.
func (r *rendering) readDocument(d *machineconfig.Passthrough) []byte {
	data := lateSourceRE.ReplaceAll(d.Data, []byte("${1}"+lateOrigin+"${2}"))
	var rpt report.Report
	var err error
	switch inventory.DocumentFormat(d.Format) {
	case inventory.DocButane:
		if line := machineconfig.SecondDocument(string(d.Data)); line > 0 {
			f := r.report.Errorf("/document", "second-document", "begins a second YAML document, which Butane does not read")
			f.Source, f.Hint = fmt.Sprintf("document:%d:1", line), "put both into one document, without ---"
			return nil
		}
		data, rpt, err = translate(data)
	case inventory.DocIgnition:
		if key, source := twice(data); source != "" {
			f := r.report.Errorf("/document", "duplicate", "has the key %s twice, and Ignition takes the last only", inventory.Clean(key, 60))
			f.Source, f.Hint = source, "put both into one"
			return nil
		}
		if strings.HasPrefix(SpecOf(data), "2.") {
			if data, err = Upgrade(data); err != nil {
				f := r.report.Errorf("/document", "invalid", "%v", err)
				f.Source = "document:1:1"
				return nil
			}
		}
		// Ignition's own parser says where a mistake is; the newest reads all older specs.
		found := Validate(data)
		for i := range found {
			found[i].Path = "/document"
		}
		if r.report = append(r.report, found...); found.HasErrors() {
			return nil
		}
	default:
		r.report.Errorf("/document", "not-expressible", "a document of format %s cannot be rendered as Ignition", d.Format).Hint = "use butane or ignition"
		return nil
	}
	addEntries(&r.report, rpt, func(string) string { return "" }, true)
	if err != nil && len(rpt.Entries) == 0 {
		r.report.Errorf("/document", "invalid", "%v", err).Source = "document:1:1"
	}
	if err != nil || len(rpt.Entries) > 0 {
		return nil
	}
	r.checkRemotes(data)
	return data
}

func decode(doc []byte) (map[string]any, error) {
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("read Ignition: %w", err)
	}
	return v, nil
}

// finishDocument gives every marker the encoding of its place, and writes the document with sorted keys.
func finishDocument(doc []byte) ([]byte, error) {
	v, err := decode(doc)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(finishValue(v)); err != nil {
		return nil, fmt.Errorf("write Ignition: %w", err)
	}
	return buf.Bytes(), nil
}

func finishValue(v any) any {
	switch x := v.(type) {
	case map[string]any:
		if s, ok := x["source"].(string); ok && strings.HasPrefix(s, "data:") {
			if text, ok := hiddenLate(s, x["compression"] == "gzip"); ok {
				x["source"] = late.DataURL(text)
				if x["compression"] != nil {
					x["compression"] = ""
				}
			}
		}
		for k, item := range x {
			item = finishValue(item)
			if m, ok := item.(map[string]any); ok && len(m) == 0 { // Merge writes every section
				delete(x, k)
			} else {
				x[k] = item
			}
		}
	case []any:
		for i, item := range x {
			x[i] = finishValue(item)
		}
	case string:
		x = strings.ReplaceAll(x, lateOrigin, "")
		if strings.HasPrefix(x, "data:") {
			return late.Retag(x, late.Percent)
		}
		return late.Retag(x, late.JSONString)
	}
	return v
}

// hiddenLate returns the text of a data: URL whose base64 or compression hides a marker.
func hiddenLate(source string, isGzip bool) (string, bool) {
	head, body, ok := strings.Cut(strings.TrimPrefix(source, "data:"), ",")
	if !ok {
		return "", false
	}
	var raw []byte
	if strings.HasSuffix(head, ";base64") {
		b, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return "", false
		}
		raw = b
	} else {
		s, err := url.PathUnescape(body)
		if err != nil || !isGzip {
			return "", false
		}
		raw = []byte(s)
	}
	if isGzip {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return "", false
		}
		if raw, err = io.ReadAll(io.LimitReader(z, 8*inventory.MaxConfigBytes)); err != nil {
			return "", false
		}
	}
	return string(raw), late.HasMarker(string(raw))
}
