package template

import (
	"fmt"
	"regexp"
	"strconv"
	"text/template"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/quoting"
)

// Bounds of templates. A text is at most maxTemplateBytes long and becomes at most maxOutputBytes; all texts of one
// configuration share the work.
const (
	maxTemplateBytes = inventory.MaxConfigBytes
	maxOutputBytes   = 4 << 20
	maxActions       = 4096      // {{ }} in one text
	maxActionBytes   = 128 << 10 // between {{ and }}, in one text
	maxNodes         = 20_000    // parts of its actions
	maxRounds        = 10_000    // of all loops
	maxWork          = 16 << 20  // bytes that functions read and write, and texts put out
	maxRangeDepth    = 3
	maxTextBytes     = 1 << 20 // that a function returns
)

// templateError is an error in a template.
type templateError struct {
	line, col int // 0 for the whole text
	msg, hint string
}

func (e *templateError) Error() string { return e.msg }

func (e *templateError) where() string {
	if e.line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d, column %d of the text: ", e.line, e.col)
}

// shown quotes a value for a message.
func shown(s string) string { return strconv.Quote(inventory.Clean(s, 80)) }

// expander expands the texts of one configuration.
type expander struct {
	vars   Vars
	report machineconfig.Report
	asked  map[string]bool       // references that the text at work has asked for, and whether their names were computed
	named  []machineconfig.Named // those of all texts
	rounds int                   // of loops
	work   int                   // bytes
	funcs  template.FuncMap

	// Of the text at work: the actions that put out secrets or free text, whether each was warned of, the one whose text comes
	// next (counted from 1, 0 for none), and what they have put out.
	outputs []output
	said    map[int]bool
	next    int
	values  []quoting.Value
	shown   []int // the action of each value
}

const templateName = "text"

var (
	placeRE   = regexp.MustCompile(`(?s)^template: ` + templateName + `:(\d+)(?::(\d+))?: (.*)$`)
	contextRE = regexp.MustCompile(`(?s)^executing "` + templateName + `" at <(.*?)>: (.*)$`)
	noKeyRE   = regexp.MustCompile(`map has no entry for key "(.*)"$`)
	noFieldRE = regexp.MustCompile(`can't evaluate field (\w+) in type (\S+)$`)
	noFuncRE  = regexp.MustCompile(`^function "(.*)" not defined$`)
)

const braceHint = `for {{ as it is, write {{"{{"}}`

// stepName is the function that counts the rounds of loops; templates cannot call it.
const stepName = "slipwayRound"

// computed is the function that stands for secret where its name is no text in quotes; templates cannot call it.
const computed = "slipwaySecret"

// outputName is the function that stands at the end of each action which puts out a secret or free text; templates cannot call it.
const outputName = "slipwayOutput"

// output is an action that puts out a secret or free text.
type output struct {
	origin
	line, col int
}

// origin says where a value of a template comes from.
type origin struct {
	path     string // .Host.Labels, while it is a part of what templates see
	name     string // of a secret or free text, "" for all else
	isSecret bool
	quote    string // the function that has quoted it
}

// charge counts work.
func (x *expander) charge(n int) error {
	x.work += n
	if x.work > maxWork {
		return &templateError{msg: "the templates take too much work", hint: "make them simpler, or let the machine fetch large files"}
	}
	return nil
}
