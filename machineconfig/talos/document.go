package talos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// documents are a machine configuration: the main document, and others that have a kind.
type documents struct {
	all  []*yaml.Node // the mappings, in order
	main *yaml.Node
}

// kind returns the document of that kind, nil if there is none.
func (d *documents) kind(kind string) *yaml.Node {
	for _, n := range d.all {
		if scalar(lookup(n, "kind")) == kind {
			return n
		}
	}
	return nil
}

// Keys that Talos 1.13 knows.
var (
	mainKeys    = []string{"version", "debug", "persist", "machine", "cluster"}
	machineKeys = strings.Fields(`type token ca acceptedCAs certSANs controlPlane kubelet pods network disks install files
		env time sysctls sysfs registries systemDiskEncryption features udev logging kernel seccompProfiles
		baseRuntimeSpecOverrides nodeLabels nodeAnnotations nodeTaints`)
	clusterKeys = strings.Fields(`id secret controlPlane clusterName network token aescbcEncryptionSecret
		secretboxEncryptionSecret ca acceptedCAs aggregatorCA serviceAccount apiServer controllerManager proxy scheduler
		discovery etcd coreDNS externalCloudProvider extraManifests extraManifestHeaders inlineManifests adminKubeconfig
		allowSchedulingOnMasters allowSchedulingOnControlPlanes`)
)

// Bounds on what is parsed.
const (
	maxDocuments = 256
	maxDepth     = 64
)

var lineRE = regexp.MustCompile(`line ([0-9]+)`)

// parse reads a machine configuration and checks what can be checked without Talos. With discreet set its errors name
// keys and lines only, never a value.
func parse(data []byte, discreet bool) (*documents, error) {
	if len(data) > inventory.MaxConfigBytes {
		return nil, fmt.Errorf("has %d bytes; at most %d are read", len(data), inventory.MaxConfigBytes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	d := &documents{}
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, syntaxError(err, discreet)
		}
		if len(n.Content) != 1 || n.Content[0].Kind == yaml.ScalarNode && n.Content[0].Value == "" {
			continue
		}
		if len(d.all) == maxDocuments {
			return nil, fmt.Errorf("has more than %d documents", maxDocuments)
		}
		if err := d.add(n.Content[0]); err != nil {
			return nil, err
		}
	}
	return d, d.check()
}

func syntaxError(err error, discreet bool) error {
	if !discreet {
		return fmt.Errorf("is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if m := lineRE.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("is not YAML: line %s", m[1])
	}
	return errors.New("is not YAML")
}

// add takes a document in, as the main one if it has no kind.
func (d *documents) add(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: is not a map of keys to values", n.Line)
	}
	if err := checkTree(n, 0); err != nil {
		return err
	}
	d.all = append(d.all, n)
	if lookup(n, "kind") != nil {
		if scalar(lookup(n, "apiVersion")) == "" {
			return fmt.Errorf("line %d: a document with a kind needs an apiVersion", n.Line)
		}
		return nil
	}
	if d.main != nil {
		return fmt.Errorf("line %d: a second document without a kind", n.Line)
	}
	d.main = n
	return nil
}

// checkTree refuses what the YAML reader of Talos refuses as well: keys that repeat, and aliases, which could be
// merged into at a place that nobody meant.
func checkTree(n *yaml.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("line %d: is nested too deeply", n.Line)
	}
	if n.Kind == yaml.AliasNode {
		return fmt.Errorf("line %d: has a YAML alias: write the value out", n.Line)
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if c.Kind != yaml.ScalarNode {
				return fmt.Errorf("line %d: a key is not a text", c.Line)
			}
			if seen[c.Value] {
				return fmt.Errorf("line %d: key %s repeats", c.Line, inventory.Clean(c.Value, 60))
			}
			seen[c.Value] = true
		}
		if err := checkTree(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (d *documents) check() error {
	if d.main == nil {
		return errors.New("has no document with version: v1alpha1 and machine")
	}
	if v := lookup(d.main, "version"); scalar(v) != "v1alpha1" {
		line := d.main.Line
		if v != nil {
			line = v.Line
		}
		return fmt.Errorf("line %d: version is not v1alpha1", line)
	}
	for _, p := range []struct {
		path  []string
		known []string
	}{{nil, mainKeys}, {[]string{"machine"}, machineKeys}, {[]string{"cluster"}, clusterKeys}} {
		n := lookup(d.main, p.path...)
		name := strings.Join(p.path, ".")
		switch {
		case n == nil:
			return fmt.Errorf("line %d: the document has no %s", d.main.Line, name)
		case n.Kind != yaml.MappingNode:
			return fmt.Errorf("line %d: %s is not a map of keys to values", n.Line, name)
		}
		for i := 0; i < len(n.Content); i += 2 {
			if !slices.Contains(p.known, n.Content[i].Value) {
				return fmt.Errorf("line %d: Talos knows no key %s", n.Content[i].Line,
					strings.Join(append(slices.Clone(p.path), inventory.Clean(n.Content[i].Value, 60)), "."))
			}
		}
	}
	if kind := scalar(lookup(d.main, "machine", "type")); !slices.Contains([]string{"controlplane", "worker", "init"}, kind) {
		return fmt.Errorf("line %d: machine.type is neither controlplane nor worker", lookup(d.main, "machine").Line)
	}
	for _, path := range [][]string{{"machine", "token"}, {"cluster", "controlPlane", "endpoint"}} {
		if scalar(lookup(d.main, path...)) == "" {
			return fmt.Errorf("%s is missing", strings.Join(path, "."))
		}
	}
	return nil
}

// lookup returns the value at a path of keys, nil if there is none.
func lookup(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				next = n.Content[i+1]
			}
		}
		n = next
	}
	return n
}

func scalar(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// child returns the value of a key in a map, which is made if there is none.
func child(n *yaml.Node, key string, kind yaml.Kind) (*yaml.Node, error) {
	c := lookup(n, key)
	if c == nil {
		c = &yaml.Node{Kind: kind, Tag: map[yaml.Kind]string{yaml.MappingNode: "!!map", yaml.SequenceNode: "!!seq"}[kind]}
		put(n, key, c)
	}
	if c.Kind == yaml.ScalarNode && (c.Tag == "!!null" || c.Value == "") {
		*c = yaml.Node{Kind: kind, Line: c.Line}
	}
	if c.Kind != kind {
		return nil, fmt.Errorf("line %d: %s is something else than Talos reads there", c.Line, key)
	}
	c.Style &^= yaml.FlowStyle
	return c, nil
}

// put sets a key of a map.
func put(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, text(key), value)
}

// drop removes a key of a map.
func drop(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// text is a string, quoted where another reading is possible.
func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

func texts(all []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, s := range all {
		n.Content = append(n.Content, text(s))
	}
	return n
}

// encode writes the documents. Values with markers are put in double quotes, so that whatever replaces a marker stays
// one text.
func (d *documents) encode() ([]byte, error) {
	var docs []any
	for _, n := range d.all {
		quoteLate(n)
		docs = append(docs, n)
	}
	return machineconfig.WriteYAML(docs...)
}

func quoteLate(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && late.HasMarker(n.Value) {
		n.Style, n.Tag = yaml.DoubleQuotedStyle, "!!str"
		n.Value = late.Retag(n.Value, late.JSONString)
	}
	for _, c := range n.Content {
		quoteLate(c)
	}
}
