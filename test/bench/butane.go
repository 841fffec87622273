package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unicode"
)

// butaneProgram is Butane's own command, built by tools/parts.sh.
var butaneProgram = func() string {
	abs, err := filepath.Abs("../../build/parts/butane")
	if err != nil {
		return "butane"
	}
	return abs
}()

var modeRE = regexp.MustCompile(`"mode":(\d+)`)

// asButane writes an Ignition configuration as the Butane document that a person would write: names with underscores,
// contents in line, modes in octal. JSON is YAML.
func asButane(ignition []byte) ([]byte, error) {
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(ignition))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("read Ignition: %w", err)
	}
	delete(doc, "ignition")
	out, err := butaneValue(doc)
	if err != nil {
		return nil, err
	}
	top := out.(map[string]any)
	top["variant"], top["version"] = "flatcar", "1.1.0"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(top); err != nil {
		return nil, fmt.Errorf("write Butane: %w", err)
	}
	return modeRE.ReplaceAllFunc(b.Bytes(), func(m []byte) []byte {
		var mode int
		_, _ = fmt.Sscanf(string(m), `"mode":%d`, &mode)
		return fmt.Appendf(nil, `"mode":0%o`, mode)
	}), nil
}

func butaneValue(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			item, err := butaneValue(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
		return v, nil
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if source, ok := value.(string); ok && name == "source" {
				text, err := textOf(source)
				if err != nil {
					return nil, err
				}
				out["inline"] = text
				continue
			}
			item, err := butaneValue(value)
			if err != nil {
				return nil, err
			}
			out[snake(name)] = item
		}
		if out["compression"] == "" {
			delete(out, "compression")
		}
		return out, nil
	}
	return v, nil
}

func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

var errNotPlain = errors.New("the benchmark's configuration has contents that are not plain data URLs")

// textOf is what a data URL holds.
func textOf(source string) (string, error) {
	data, ok := strings.CutPrefix(source, "data:")
	_, text, hasText := strings.Cut(data, ",")
	if !ok || !hasText || strings.Contains(source[:len(source)-len(text)], "base64") {
		return "", fmt.Errorf("%w: %.60s", errNotPlain, source)
	}
	return url.PathUnescape(text)
}

// sameAsButane runs Butane on a file and compares what it says with what we say. How a content is packed is each
// one's own business, so only its presence is compared.
func sameAsButane(ctx context.Context, file string, ours []byte) error {
	if _, err := os.Stat(butaneProgram); err != nil {
		return fmt.Errorf("%s is missing; run: tools/parts.sh build butane", butaneProgram)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, butaneProgram, "--strict", file)
	cmd.Stderr = &stderr
	theirs, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("butane --strict %s: %w: %s", file, err, stderr.String())
	}
	var a, b map[string]any
	if err := errors.Join(json.Unmarshal(ours, &a), json.Unmarshal(theirs, &b)); err != nil {
		return fmt.Errorf("read Ignition: %w", err)
	}
	a, b = withoutPacking(a).(map[string]any), withoutPacking(b).(map[string]any)
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("butane makes something else of %s:\n%v\n%v", file, a, b)
	}
	return nil
}

func withoutPacking(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutPacking(v[i])
		}
	case map[string]any:
		delete(v, "compression")
		delete(v, "version")
		for name := range v {
			if v[name] = withoutPacking(v[name]); name == "source" {
				v[name] = "contents"
			}
		}
	}
	return v
}
