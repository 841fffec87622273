package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
)

// maxFile bounds a configuration file; a shorter part of a longer one could mean something else.
const maxFile = 1 << 20

// ReadFile reads the YAML file into c. An unknown key is an error that names file and line.
func (c *Config) ReadFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return &inventory.Error{
			Kind: inventory.Invalid, Msg: "cannot read the configuration: " + err.Error(),
			Hint: "no file is needed: slipway serve --interface NAME",
		}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > maxFile {
		return inventory.Errorf(inventory.Invalid, "%s is larger than 1 MiB", filepath.Base(path)).WithHint("the keys are listed in docs/configuration.md")
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	// A misspelt key would else be ignored, and the server would run with a default that nobody chose.
	dec.KnownFields(true)
	if err := dec.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return &inventory.Error{
			Kind: inventory.Invalid, Msg: filepath.Base(path) + ": " + yamlMessage(err),
			Hint: "the keys are listed in docs/configuration.md",
		}
	}
	key, row, err := c.badValue()
	if why, ok := errors.AsType[*inventory.Error](err); ok {
		return &inventory.Error{
			Kind: inventory.Invalid, Hint: why.Hint, Err: err,
			Msg: fmt.Sprintf("%s: line %d: %s", filepath.Base(path), lineOf(text, key, row), why.Msg),
		}
	}
	if err != nil {
		return err
	}
	return c.storage().CheckFile(path)
}

// lineOf returns the line in which a key of the file stands, or the row of its list.
func lineOf(text []byte, key string, row int) int {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return 1
	}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if k, v := top[i], top[i+1]; k.Value == key {
			if v.Kind == yaml.SequenceNode && row < len(v.Content) {
				return v.Content[row].Line
			}
			return k.Line
		}
	}
	return 1
}

// yamlMessage is what the YAML library says without the names of our Go types, which no reader of a file knows.
func yamlMessage(err error) string {
	var t *yaml.TypeError
	if !errors.As(err, &t) {
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	var lines []string
	for _, line := range t.Errors {
		line, _, _ = strings.Cut(line, " in type ")
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}
