package capisecret

import (
	"bytes"
	"cmp"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// Nothing that is in a secret may be in an error, but for keys, paths on the machine and expressions of templates:
// errors are shown, stored and logged.

// refuse is an error about the secret.
func refuse(hint, format string, args ...any) *inventory.Error {
	e := inventory.Errorf(inventory.Invalid, "the bootstrap secret "+format, args...).WithHint("%s", hint)
	e.Err = machineconfig.ErrUnsupportedDirective
	return e
}

// foreignForm is an error about what kind of document the secret is.
func foreignForm(hint, format string, args ...any) *inventory.Error {
	e := refuse(hint, format, args...)
	e.Err = machineconfig.ErrUnsupportedFormat
	return e
}

// otherFormat is an error about a document that is for another tool.
func otherFormat(format string, args ...any) *inventory.Error {
	e := inventory.Errorf(inventory.Invalid, format, args...)
	e.Err = machineconfig.ErrUnsupportedFormat
	return e
}

const hintValue = "store what Cluster API's secret holds under the key value, after base64 -d"

// checkForm finds a value that is not what its format says, as it happens when a secret is copied by hand.
func checkForm(secret []byte, format string) error {
	text := bytes.TrimSpace(secret)
	isJSON := bytes.HasPrefix(text, []byte("{"))
	switch {
	case len(text) == 0:
		return foreignForm(hintValue, "is empty")
	case len(secret) > inventory.MaxConfigBytes:
		return foreignForm("Kubernetes stores no larger secrets either", "is larger than %d bytes", inventory.MaxConfigBytes)
	case bytes.HasPrefix(secret, []byte{0x1f, 0x8b}):
		return foreignForm("turn that off in the bootstrap provider, such as gzipUserData: false", "is compressed")
	case format == formatIgnition && !isJSON:
		return foreignForm("say secretFormat: cloud-config if it is one; otherwise "+hintValue, "is no JSON, as Ignition is")
	case format == formatCloudConfig && isJSON:
		return foreignForm("say secretFormat: ignition", "is JSON, not a cloud-config")
	case format == formatCloudConfig && !isCloudConfig(secret):
		return foreignForm(hintValue, "has no line #cloud-config at its start")
	}
	return nil
}

// isCloudConfig looks for the line that cloud-init tells formats by, after that of a template.
func isCloudConfig(text []byte) bool {
	if isJinja(text) {
		_, text, _ = bytes.Cut(bytes.TrimLeft(text, "\n"), []byte("\n"))
	}
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("#cloud-config"))
}

var (
	unknownKeyRE = regexp.MustCompile(`^line (\d+): field (\S+) not found in type `)
	lineRE       = regexp.MustCompile(`line (\d+)`)
)

const hintKeys = "Cluster API's providers write write_files, bootcmd, runcmd, users, ntp, disk_setup, fs_setup and mounts; " +
	"an image with cloud-init takes any other as it is"

// yamlError says where the parser stopped. Its own words quote the document.
func yamlError(err error) error {
	if own, ok := errors.AsType[*inventory.Error](err); ok {
		return own
	}
	text := err.Error()
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok && len(wrong.Errors) > 0 {
		text = wrong.Errors[0]
		if m := unknownKeyRE.FindStringSubmatch(text); m != nil {
			return refuse(hintKeys, "has the key %q in line %s, which cannot be translated", inventory.Clean(m[2], 60), m[1])
		}
		if m := lineRE.FindStringSubmatch(text); m != nil {
			return refuse("compare it with cloud-init's documentation of that key", "has a value of the wrong type in line %s", m[1])
		}
	}
	where := ""
	if m := lineRE.FindStringSubmatch(text); m != nil {
		where = " near line " + m[1]
	}
	return foreignForm(hintValue, "is no cloud-config: its YAML is broken%s", where)
}

// jsonError says where a JSON document is broken.
func jsonError(text []byte, offset int64) error {
	line := 1 + bytes.Count(text[:min(max(int(offset), 0), len(text))], []byte("\n"))
	return foreignForm(hintValue, "is no Ignition: its JSON is broken in line %s", strconv.Itoa(line))
}

// reported makes an error of findings about the document that secret became.
func reported(report machineconfig.Report, secret []byte) error {
	for _, f := range report {
		if f.Severity == machineconfig.SeverityError {
			return retell(f.Path, f.Message, f.Hint, secret)
		}
	}
	return nil
}

// retell says what a parser or a provisioner said, unless it quotes the secret.
func retell(path, message, hint string, secret []byte) error {
	hint = cmp.Or(hint, "let the bootstrap provider write what Ignition can say, or use an image with cloud-init")
	values := valuesOf(secret)
	if path != "" {
		path = " at " + path
	}
	if quotes(hint, values) {
		hint = "compare it with Ignition's documentation"
	}
	if message, _, _ = strings.Cut(message, "\n"); len(message) > 300 || quotes(message, values) {
		return refuse(hint, "has no equivalent in Ignition%s", path)
	}
	return refuse(hint, "has no equivalent in Ignition%s: %s", path, message)
}

// quoted is how many characters of a value make a quotation.
const quoted = 6

// quotes reports whether text holds a piece of a value.
func quotes(text string, values string) bool {
	for i := 0; i+quoted <= len(text); i++ {
		if strings.Contains(values, text[i:i+quoted]) {
			return true
		}
	}
	return false
}

// valuesOf returns the texts of a document, encoded and decoded, without its keys.
func valuesOf(secret []byte) string {
	var root yaml.Node
	if yaml.Unmarshal(secret, &root) != nil {
		return string(secret)
	}
	var b strings.Builder
	var walk func(n *yaml.Node, isKey bool)
	walk = func(n *yaml.Node, isKey bool) {
		if n.Kind == yaml.ScalarNode && !isKey {
			b.WriteString(n.Value + "\n")
			if text, ok := dataOf(n.Value); ok {
				b.Write(text)
			}
		}
		for i, item := range n.Content {
			walk(item, n.Kind == yaml.MappingNode && i%2 == 0)
		}
	}
	walk(&root, false)
	return b.String()
}
