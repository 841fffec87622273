package hardware

import (
	"errors"
	"reflect"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"slipway.dev/slipway/inventory"
)

const (
	// expressionLimit bounds the source text in bytes, as inventory and the CRDs do.
	expressionLimit = 2048
	// costLimit bounds one evaluation, in CEL's own unit of about one comparison: a look at each of 1,024 PCI devices
	// costs 10,000. It is a few milliseconds at worst.
	costLimit = 100_000
)

// Expression is a compiled condition on a host. It is safe for use by several goroutines.
type Expression struct {
	text    string
	phrase  string
	program cel.Program
}

// language returns the CEL environment in which host is known.
var language = sync.OnceValues(func() (*cel.Env, error) {
	base, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	s := newSchema(base, reflect.TypeFor[view]())
	return cel.NewEnv(cel.CustomTypeProvider(s), cel.CustomTypeAdapter(s), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.ParserRecursionLimit(64), cel.ParserExpressionSizeLimit(expressionLimit),
		cel.Variable("host", s.structs[celName(reflect.TypeFor[view]())].typ))
})

const expressionHint = `for example: host.cpu.threads >= 16 && host.disks.exists(d, !d.isRotational) && host.labels["zone"] == "a"`

// Compile reads a CEL condition on host: its hardware, labels, facts and place in the JSON names of the API. A field that
// does not exist is an error here, with its position. Holds finds out what one host lacks: a label, a TPM, or all hardware
// without an inspection.
func Compile(expression string) (*Expression, error) {
	text := strings.TrimSpace(expression)
	switch {
	case text == "":
		return nil, inventory.Errorf(inventory.Invalid, "the expression is empty").WithHint(expressionHint)
	case len(text) > expressionLimit:
		return nil, inventory.Errorf(inventory.Invalid, "the expression is %d bytes long; at most %d are allowed", len(text), expressionLimit)
	}
	env, err := language()
	if err != nil {
		return nil, &inventory.Error{Kind: inventory.Internal, Msg: "expressions cannot be read", Err: err}
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, explain(text, issues)
	}
	if ast.OutputType() != cel.BoolType {
		return nil, inventory.Errorf(inventory.Invalid, "the expression gives a %s and not true or false", inventory.Clean(ast.OutputType().String(), 80)).
			WithHint(expressionHint)
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "the expression cannot be used: %s", inventory.Clean(err.Error(), 200)).WithHint(expressionHint)
	}
	return &Expression{text: text, phrase: "does not meet the expression " + inventory.Clean(text, 120), program: program}, nil
}

// explain turns CEL's first complaint into ours; the line and column count from 1.
func explain(text string, issues *cel.Issues) error {
	all := issues.Errors()
	if len(all) == 0 {
		return inventory.Errorf(inventory.Invalid, "the expression is not valid").WithHint(expressionHint)
	}
	e := all[0]
	msg, _, _ := strings.Cut(e.Message, "\n")
	msg = inventory.Clean(msg, 200)
	if e.Location.Line() < 1 || e.Location.Column() < 0 {
		return inventory.Errorf(inventory.Invalid, "the expression is not valid: %s", msg).WithHint(expressionHint)
	}
	at := inventory.Errorf(inventory.Invalid, "the expression is not valid in line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, msg)
	if strings.Contains(msg, "undefined field") {
		return at.WithHint("the fields are those of: slipway host hardware NAME -o json")
	}
	return at.WithHint(expressionHint)
}

// String returns the source text.
func (e *Expression) String() string { return e.text }

// Holds reports whether a host meets the expression, and if not, why in a phrase. An expression that cannot be evaluated
// does not hold: it excludes one host and stops nothing.
func (e *Expression) Holds(s *Subject) (ok bool, why string) {
	out, _, err := e.program.Eval(activation{s.look()})
	if err != nil {
		return false, e.reason(err)
	}
	if out == types.True {
		return true, ""
	}
	return false, e.phrase
}

// activation gives expressions their one variable.
type activation struct{ host *view }

// ResolveName implements interpreter.Activation.
func (a activation) ResolveName(name string) (any, bool) { return a.host, name == "host" }

// Parent implements interpreter.Activation.
func (activation) Parent() interpreter.Activation { return nil }

// TooCostly is the phrase for a host on which an expression takes too long.
const TooCostly = "has too many parts for the expression: its cost is over the limit"

func (e *Expression) reason(err error) string {
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled):
		return TooCostly
	case errors.Is(err, errNeverInspected):
		return errNeverInspected.Error()
	}
	return e.phrase + ": " + inventory.Clean(err.Error(), 120)
}
