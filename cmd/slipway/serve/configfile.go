package serve

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cmd/slipway/serve/storage"
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

// UsualConfig is the configuration file that the unit of systemd uses.
const UsualConfig = "/etc/slipway/config.yaml"

// ownKeys are the keys of the file that each instance has for itself. All instances share the others, because each of them may become the
// leader.
var ownKeys = []string{
	"interfaces", "dataDir", "databasePasswordFile", "instance", "instanceListen", "adminListen", "adminTLSCert", "adminTLSKey", "loaders",
	"kubeconfig", "range", "logLevel", "logFormat",
}

// Values returns the settings by their keys in the file. Those that have their defaults are left out.
func (c *Config) Values() (map[string]any, error) {
	values := func(c *Config) (all map[string]any, err error) {
		text, err := yaml.Marshal(c)
		if err == nil {
			err = yaml.Unmarshal(text, &all)
		}
		return all, err
	}
	usual := Default()
	all, err := values(c)
	if err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	defaults, err := values(&usual)
	if err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	maps.DeleteFunc(all, func(key string, value any) bool { return reflect.DeepEqual(value, defaults[key]) })
	return all, nil
}

// shared returns the settings that all instances share, as a configuration file.
func (c *Config) shared() (string, error) {
	all, err := c.Values()
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(all, func(key string, _ any) bool { return slices.Contains(ownKeys, key) })
	text, err := yaml.Marshal(all)
	return string(text), err
}

// ParseSettings reads a configuration file as ReadFile does, and checks no value: files that it names need not be there.
func ParseSettings(text []byte) (Config, error) {
	c := Default()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, inventory.Errorf(inventory.Invalid, "%s", inventory.Clean(yamlMessage(err), 300)).
			WithHint("the keys are listed in docs/configuration.md")
	}
	return c, nil
}

// SharedFiles returns the paths of the files that shared settings name. The keys are the names of these files on a machine that Slipway
// writes them to.
func (c *Config) SharedFiles() map[string]string {
	all := storage.FilesOf(c.Database)
	all["catalogue.yaml"] = c.Catalogue
	if c.OIDC != nil {
		all["oidc-secret"], all["oidc-ca.crt"] = c.OIDC.ClientSecretFile, c.OIDC.CAFile
	}
	maps.DeleteFunc(all, func(_, path string) bool { return path == "" })
	return all
}

// WithFiles returns the settings with other paths of these files.
func (c Config) WithFiles(paths map[string]string) Config {
	c.Database = storage.WithFiles(c.Database, paths)
	c.Catalogue = cmp.Or(paths["catalogue.yaml"], c.Catalogue)
	if c.OIDC != nil {
		o := *c.OIDC
		o.ClientSecretFile, o.CAFile = cmp.Or(paths["oidc-secret"], o.ClientSecretFile), cmp.Or(paths["oidc-ca.crt"], o.CAFile)
		c.OIDC = &o
	}
	return c
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
