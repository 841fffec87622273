package capisecret

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// conversion says what is to be made of a secret. It is in references, so it holds all that is needed besides the
// secret's value.
type conversion struct {
	From   string               `json:"from"`
	Target machineconfig.Target `json:"target"`
	Meta   map[string]string    `json:"meta"` // what its templates may ask for
}

// ignition makes an Ignition configuration for the target.
func (c conversion) ignition(secret []byte) ([]byte, error) {
	if c.From == formatIgnition {
		return c.upgrade(secret)
	}
	text, err := resolve(secret, c.Meta)
	if err != nil {
		return nil, err
	}
	config, err := parseCloudConfig(text)
	if err != nil {
		return nil, err
	}
	p := ignition.Within("capi")
	if err := reported(machineconfig.Check(p, c.Target, config, nil), text); err != nil {
		return nil, err
	}
	out, report := p.Render(c.Target, config)
	if err := reported(report, text); err != nil {
		return nil, err
	}
	if out == nil || len(out.Documents) != 1 {
		return nil, inventory.Errorf(inventory.Internal, "the bootstrap secret became no Ignition configuration")
	}
	return out.Documents[0].Data, nil
}

// upgrade brings an Ignition configuration to version 3 and fills in its templates, which nothing on the machine does.
func (c conversion) upgrade(secret []byte) ([]byte, error) {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(secret, new(json.RawMessage)); errors.As(err, &syntax) {
		return nil, jsonError(secret, syntax.Offset)
	}
	spec := ignition.SpecOf(secret)
	if spec == "" {
		return nil, foreignForm(hintValue, "is JSON, but says no ignition.version")
	}
	text := secret
	if strings.HasPrefix(spec, "2.") {
		var err error
		if text, err = ignition.Upgrade(numbered(secret)); err != nil {
			return nil, foreign(err, secret)
		}
	}
	text, err := resolveIgnition(text, c.Meta)
	if err != nil {
		return nil, err
	}
	reads := cmp.Or(c.Target.Tool, "3.3.0")
	if spec = ignition.SpecOf(text); !ignition.CanRead(reads, spec) {
		return nil, foreignForm("use an image that reads it, or let the bootstrap provider write format: cloud-config",
			"is Ignition %s, and this image reads %s", spec, inventory.Clean(reads, 40))
	}
	isWarning := func(f machineconfig.Finding) bool {
		return f.Code != "ignition-error" && strings.HasPrefix(f.Code, "ignition-")
	}
	return text, reported(slices.DeleteFunc(ignition.Validate(text), isWarning), secret)
}

// numbered gives numbers to the partitions of an Ignition 2.x document that have neither one nor a label. Cluster API
// writes {} for one that fills the disk; version 3 wants to know which it is.
func numbered(secret []byte) []byte {
	doc, err := decodeIgnition(secret)
	if err != nil {
		return secret
	}
	storage, _ := doc["storage"].(map[string]any)
	disks, _ := storage["disks"].([]any)
	changed := false
	for _, d := range disks {
		disk, _ := d.(map[string]any)
		partitions, _ := disk["partitions"].([]any)
		for i, p := range partitions {
			part, _ := p.(map[string]any)
			if part != nil && part["number"] == nil && part["label"] == nil {
				part["number"], changed = i+1, true
			}
		}
	}
	if !changed {
		return secret
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return secret
	}
	return out
}

func decodeIgnition(text []byte) (doc map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return nil, jsonError(text, d.InputOffset())
	}
	return doc, nil
}

// foreign retells an error of package ignition.
func foreign(err error, secret []byte) error {
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		return retell("", e.Msg, e.Hint, secret)
	}
	return retell("", err.Error(), "", secret)
}

// resolveIgnition fills in the templates in the contents of an Ignition 3 configuration: those of units, and of files
// given as data: URLs.
func resolveIgnition(text []byte, meta map[string]string) ([]byte, error) {
	doc, err := decodeIgnition(text)
	if err != nil {
		return nil, err
	}
	t := templates{meta: meta, budget: maxExpanded}
	if err := t.walk(doc); err != nil {
		return nil, err
	}
	if t.filledN == 0 {
		return text, nil
	}
	return json.Marshal(doc)
}

// templates fills in a document in place.
type templates struct {
	meta    map[string]string
	budget  int // bytes that compressed files may still become
	filledN int
}

func (t *templates) walk(v any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := t.walk(item); err != nil {
				return err
			}
		}
	case map[string]any:
		if err := t.contents(v); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := t.walk(v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// contents fills in a unit, or the data: URL of a resource.
func (t *templates) contents(m map[string]any) error {
	if text, ok := m["contents"].(string); ok {
		out, err := t.fill(text)
		if err != nil {
			return err
		}
		m["contents"] = out
	}
	source, _ := m["source"].(string)
	raw, ok := dataOf(source)
	if !ok {
		return nil
	}
	if compression, _ := m["compression"].(string); compression == "gzip" {
		var err error
		if raw, err = gunzip(raw, &t.budget); err != nil {
			return refuse("let the bootstrap provider write it again", "has a compressed file in it: %s", err)
		}
	}
	out, err := t.fill(string(raw))
	if err != nil || out == string(raw) {
		return err
	}
	m["source"] = "data:;base64," + base64.StdEncoding.EncodeToString([]byte(out))
	delete(m, "compression")
	delete(m, "verification") // of what was there before
	return nil
}

func (t *templates) fill(text string) (string, error) {
	out, err := fill(metaRE, text, t.meta)
	if out != text {
		t.filledN++
	}
	return out, err
}

// dataOf returns the content of a data: URL. One that is damaged is left to Ignition's own parser.
func dataOf(source string) ([]byte, bool) {
	rest, ok := strings.CutPrefix(source, "data:")
	head, body, hasBody := strings.Cut(rest, ",")
	if !ok || !hasBody {
		return nil, false
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		return nil, false
	}
	if !strings.HasSuffix(head, ";base64") {
		return []byte(text), true
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return raw, err == nil
}

// maxExpanded bounds what all compressed files of a secret become.
const maxExpanded = 16 << 20

var errGzip = errors.New("it is damaged, or too large")

// gunzip takes what comes out from the budget.
func gunzip(data []byte, budget *int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, errGzip
	}
	out, err := io.ReadAll(io.LimitReader(z, int64(*budget)+1))
	if err != nil || len(out) > *budget {
		return nil, errGzip
	}
	*budget -= len(out)
	return out, nil
}
