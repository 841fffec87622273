package docschema

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// What PyYAML, which is YAML 1.1, makes of a plain word.
var (
	boolRE  = regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	intRE   = regexp.MustCompile(`^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	floatRE = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|` +
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	nullRE = regexp.MustCompile(`^(?:~|null|Null|NULL|)$`)
	dateRE = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$|` +
		`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?$`)
)

// typeOf says what PyYAML makes of a scalar.
func typeOf(n *yaml.Node) string {
	if n.Style&yaml.TaggedStyle != 0 {
		switch n.Tag {
		case "!!int":
			return "integer"
		case "!!float":
			return "number"
		case "!!bool":
			return "boolean"
		case "!!null":
			return "null"
		}
		return "string"
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return "string"
	}
	switch v := n.Value; {
	case nullRE.MatchString(v):
		return "null"
	case boolRE.MatchString(v):
		return "boolean"
	case intRE.MatchString(v):
		return "integer"
	case floatRE.MatchString(v):
		return "number"
	case dateRE.MatchString(v):
		return "date"
	}
	return "string"
}

// truth is true or false for a boolean, "" for anything else.
func truth(n *yaml.Node) string {
	if typeOf(n) != "boolean" {
		return ""
	}
	if slices.Contains([]string{"yes", "true", "on"}, strings.ToLower(n.Value)) {
		return "true"
	}
	return "false"
}

// clip shortens what a document says and takes out what no terminal should see.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
