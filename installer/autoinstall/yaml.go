package autoinstall

import (
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// object is a mapping in the order in which it is written.
type object []field

type field struct {
	key   string
	value any
}

type list []any

// node is YAML that has been read: it is written again in the style that it had, so that the markers in it keep the
// encoding that they ask for.
type node yaml.Node

func (o object) with(key string, value any) object {
	return append(o[:len(o):len(o)], field{key, value})
}

func (o object) encode() []byte {
	text, err := machineconfig.WriteYAML(tree(o))
	if err != nil {
		panic(err) // a tree of nodes always encodes
	}
	return text
}

// tree turns values into nodes. A string that holds a marker is double-quoted, as the marker's encoding says.
func tree(v any) *yaml.Node {
	switch v := v.(type) {
	case object:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range v {
			n.Content = append(n.Content, tree(f.key), tree(f.value))
		}
		return n
	case list:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			n.Content = append(n.Content, tree(item))
		}
		return n
	case *node:
		return (*yaml.Node)(v)
	case string:
		n := &yaml.Node{}
		n.SetString(v)
		if late.HasMarker(v) {
			n.Value, n.Style = late.Retag(v, late.JSONString), yaml.DoubleQuotedStyle
		}
		return n
	default:
		n := &yaml.Node{}
		if err := n.Encode(v); err != nil {
			panic(err) // a bool or number always encodes
		}
		return n
	}
}

// parse reads YAML that this program has written; what is no mapping is an empty one.
func parse(text []byte) *node {
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil || len(n.Content) == 0 || n.Content[0].Kind != yaml.MappingNode {
		return &node{Kind: yaml.MappingNode}
	}
	inner := n.Content[0]
	inner.HeadComment, inner.FootComment, inner.LineComment = "", "", ""
	if len(inner.Content) > 0 {
		inner.Content[0].HeadComment = ""
	}
	return (*node)(inner)
}

// get returns the value of a key, nil if there is none.
func (n *node) get(key string) *node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return (*node)(n.Content[i+1])
		}
	}
	return nil
}
