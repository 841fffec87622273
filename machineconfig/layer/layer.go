// Package layer reads the layers of a configuration, and merges them to one. A layer is YAML in the shape of machineconfig.Config.
// The package finds unknown keys and wrong types. It never checks what a value means: package validation does.
//
// Start reading at Parse, then Merge. The shape of Config, which says how each place is merged, is in shape.go.
package layer

import (
	"cmp"
	"strconv"
)

// Layer is one parsed layer of configuration. It never changes, so that many goroutines may merge it at once.
type Layer struct {
	origin string
	root   *node // nil when it says nothing
}

// Origin is the name that Parse was given.
func (l *Layer) Origin() string { return l.origin }

// IsEmpty reports whether the layer says nothing.
func (l *Layer) IsEmpty() bool { return l == nil || l.root == nil }

// node is a value of a layer with its place. Nodes never change once they are made; merging makes new ones that share
// what is the same.
type node struct {
	shape     *shape
	layer     *Layer
	line, col int

	text string // of texts and modes
	num  int    // of numbers, modes and booleans (0 or 1)

	fields []*node // of objects, by fieldShape.pos; nil where the layer has no value
	pairs  []pair  // of maps, sorted by key
	items  []*node // of lists
	key    string  // of an item of a keyed list, "" without one

	op op
	// hasOps is true when op or something below it does more than to be merged.
	hasOps  bool
	removed []removal // keys that $remove lists
}

type pair struct {
	key   string
	value *node
}

// removal is one entry of $remove.
type removal struct {
	key       string
	line, col int
}

// op is what a node does to the value of wider layers, instead of being merged with it.
type op uint8

const (
	opMerge   op = iota
	opReplace    // nothing of the wider value stays
	opRemove     // the wider value goes
)

// source is where a node stands, with its column.
func (l *Layer) source(line, col int) string {
	return l.origin + ":" + strconv.Itoa(line) + ":" + strconv.Itoa(col)
}

func (n *node) source() string { return n.layer.source(n.line, n.col) }

// place is where a node stands, as Config.Provenance says it.
func (n *node) place() string { return n.layer.origin + ":" + strconv.Itoa(n.line) }

func comparePairs(a, b pair) int { return cmp.Compare(a.key, b.key) }

// itemKey is the key of an item by the values of its key fields: routes 0.0.0.0/0, 0.0.0.0/0@100 (metric) and
// 0.0.0.0/0@100#200 (table), taints key:effect, all others the one field.
func itemKey(keys []string, value func(name string) string) string {
	key := value(keys[0])
	for _, k := range keys[1:] {
		v := value(k)
		switch {
		case k == "metric" && v != "" && v != "0":
			key += "@" + v
		case k == "table" && v != "" && v != "0":
			key += "#" + v
		case k == "effect":
			key += ":" + v
		}
	}
	return key
}
