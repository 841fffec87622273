package template

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"slipway.dev/slipway/machineconfig/late"
)

// functionList names all functions, sorted.
var functionList = []string{
	"address", "and", "b64enc", "bits", "contains", "default", "eq", "ge", "gt", "hasPrefix", "hasSuffix", "indent", "index", "ip",
	"join", "json", "le", "len", "lower", "lt", "ne", "network", "not", "nth", "or", "printf", "quote", "replace", "secret", "shell", "split",
	"systemd", "trim", "upper",
}

func functionNames() []string { return functionList }

func isFunction(name string) bool {
	_, ok := slices.BinarySearch(functionList, name)
	return ok
}

// functions are all functions but the built-in ones. Each charges what it reads and writes.
func (x *expander) functions() template.FuncMap {
	return template.FuncMap{
		stepName:    x.round,
		"address":   x.address,
		"secret":    func(name string) (string, error) { return x.secret(name, false) },
		computed:    func(name string) (string, error) { return x.secret(name, true) },
		"default":   func(or, s any) any { return defaultTo(or, s) },
		"eq":        x.eq,
		"ne":        func(a, b any) (bool, error) { is, err := x.eq(a, b); return !is, err },
		"lt":        func(a, b int) bool { return a < b },
		"le":        func(a, b int) bool { return a <= b },
		"gt":        func(a, b int) bool { return a > b },
		"ge":        func(a, b int) bool { return a >= b },
		"printf":    x.printf,
		outputName:  x.output,
		"shell":     func(s any) (string, error) { return x.quote("shell", late.ShellQuote, shellQuote, s) },
		"systemd":   func(s any) (string, error) { return x.quote("systemd", late.UnitQuote, unitQuote, s) },
		"quote":     func(s string) (string, error) { return x.quote("quote", late.JSONString, jsonQuote, s) },
		"json":      x.json,
		"lower":     func(s string) (string, error) { return x.text("lower", strings.ToLower, s) },
		"upper":     func(s string) (string, error) { return x.text("upper", strings.ToUpper, s) },
		"trim":      func(s string) (string, error) { return x.text("trim", strings.TrimSpace, s) },
		"b64enc":    x.b64enc,
		"replace":   x.replace,
		"indent":    x.indent,
		"split":     x.split,
		"join":      x.join,
		"hasPrefix": func(prefix, s string) (bool, error) { return strings.HasPrefix(s, prefix), x.charge(len(prefix)) },
		"hasSuffix": func(suffix, s string) (bool, error) { return strings.HasSuffix(s, suffix), x.charge(len(suffix)) },
		"contains":  func(part, s string) (bool, error) { return strings.Contains(s, part), x.charge(len(s)) },
		"ip":        func(s string) (string, error) { p, err := prefixOf("ip", s); return p.Addr().String(), err },
		"bits":      func(s string) (int, error) { p, err := prefixOf("bits", s); return p.Bits(), err },
		"network":   func(s string) (string, error) { p, err := prefixOf("network", s); return p.Masked().String(), err },
		"nth":       nth,
	}
}

// round counts the rounds of loops; it puts out nothing.
func (x *expander) round() (string, error) {
	x.rounds++
	if x.rounds > maxRounds {
		return "", &templateError{msg: fmt.Sprintf("the loops take more than %d rounds", maxRounds)}
	}
	return "", nil
}

// secret returns the marker of a secret, which is replaced by its value when the machine fetches the document. A name that
// is computed is the word of anyone who wrote what the template reads, not of the template's author.
func (x *expander) secret(name string, isComputed bool) (string, error) {
	if !late.IsSecretName(name) {
		return "", &templateError{msg: shown(name) + " is not the name of a secret", hint: "use 1 to 63 of a-z, 0-9 and -, without secret://"}
	}
	ref := "secret://" + name
	x.asked[ref] = x.asked[ref] || isComputed
	return late.Marker(ref), nil
}

// whole refuses to change a secret: its value is not known before the machine asks for it.
func whole(function string, texts ...string) error {
	for _, s := range texts {
		if strings.Contains(s, late.Prefix) {
			return &templateError{
				msg:  function + " cannot be applied to a secret: its value is put in when the machine asks for it",
				hint: `use {{ secret "name" }} alone or with shell, json, systemd or b64enc, or store the secret in the form that is needed`,
			}
		}
	}
	return nil
}

// text applies a function whose result is at most six times as long as s.
func (x *expander) text(name string, f func(string) string, s string) (string, error) {
	if err := whole(name, s); err != nil {
		return "", err
	}
	return x.sized(name, 2*len(s), func() string { return f(s) })
}

// sized makes a text of about n bytes after it is clear that this is not too much.
func (x *expander) sized(name string, n int, f func() string) (string, error) {
	if n > maxTextBytes {
		return "", &templateError{msg: fmt.Sprintf("%s would make a text of more than %d bytes", name, maxTextBytes)}
	}
	if err := x.charge(n); err != nil {
		return "", err
	}
	s := f()
	if len(s) > maxTextBytes {
		return "", &templateError{msg: fmt.Sprintf("%s would make a text of more than %d bytes", name, maxTextBytes)}
	}
	return s, nil
}

func defaultTo(or, s any) any {
	v := reflect.ValueOf(s)
	if !v.IsValid() || v.IsZero() {
		return or
	}
	return s
}

// eq compares texts, numbers and truths, the first with any of the others.
func (x *expander) eq(first any, others ...any) (bool, error) {
	a, err := scalarOf(first)
	if err != nil {
		return false, err
	}
	if len(others) == 0 {
		return false, &templateError{msg: "eq compares two or more values"}
	}
	is := false
	for _, o := range others {
		b, err := scalarOf(o)
		if err != nil {
			return false, err
		}
		s, _ := b.(string)
		if err := x.charge(len(s)); err != nil {
			return false, err
		}
		if reflect.TypeOf(a) != reflect.TypeOf(b) {
			return false, &templateError{msg: fmt.Sprintf("cannot compare %s with %s", shown(fmt.Sprint(a)), shown(fmt.Sprint(b)))}
		}
		is = is || a == b
	}
	return is, nil
}

// scalarOf makes a text, number or truth of a value of any such type.
func scalarOf(a any) (any, error) {
	v := reflect.ValueOf(a)
	switch {
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.CanInt():
		return v.Int(), nil
	case v.CanFloat():
		return v.Float(), nil
	case v.Kind() == reflect.Bool:
		return v.Bool(), nil
	}
	return nil, &templateError{msg: "only texts, numbers and truths can be compared"}
}

// maxWidth is the largest width and precision of printf.
const maxWidth = 256

// printf formats texts and numbers. The verbs are d, f, q, s, t, v, x, X and %, with a width of up to 256.
func (x *expander) printf(format string, args ...any) (string, error) {
	size := len(format)
	for i, verb := range verbs(format) {
		if verb == "" || !strings.Contains("dfqstvxX%", verb[len(verb)-1:]) || strings.Trim(verb[:len(verb)-1], "-+# 0123456789.") != "" || width(verb) > maxWidth {
			return "", &templateError{msg: "printf does not know " + shown("%"+verb), hint: fmt.Sprintf("use %%d %%f %%q %%s %%t %%v %%x with a width of up to %d; %%%% is a percent sign", maxWidth)}
		}
		if i > 1000 {
			return "", &templateError{msg: "printf has too many verbs"}
		}
		size += 2 * maxWidth
	}
	for i, a := range args {
		v, err := scalarOf(a)
		if err != nil {
			return "", &templateError{msg: "printf formats texts, numbers and truths", hint: "put a list together with join"}
		}
		args[i] = v
		s, isText := v.(string)
		size += 4 * len(s)
		if isText && strings.Contains(s, late.Prefix) && strings.Trim(strings.Join(verbs(format), ""), "sv%") != "" {
			return "", whole("printf with other verbs than %s", s)
		}
	}
	s, err := x.sized("printf", size, func() string { return fmt.Sprintf(format, args...) })
	if err == nil && strings.Contains(s, "%!") && !strings.Contains(format, "%!") {
		return "", &templateError{msg: "printf: the verbs of " + shown(format) + " do not fit the values"}
	}
	return s, err
}

// verbs returns what follows each percent sign, up to the verb's letter.
func verbs(format string) []string {
	var all []string
	for {
		_, rest, ok := strings.Cut(format, "%")
		if !ok {
			return all
		}
		n := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("-+# 0123456789.*[]", r) })
		if n < 0 || n > 16 {
			return append(all, "")
		}
		all = append(all, rest[:n+1])
		format = rest[n+1:]
	}
}

// width returns the largest number in a verb.
func width(verb string) int {
	most := 0
	for _, digits := range strings.FieldsFunc(verb, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			n = maxWidth + 1
		}
		most = max(most, n)
	}
	return most
}

// jsonQuote is a JSON string, which is a double-quoted one of YAML and, without $ and backticks, of shells.
func jsonQuote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

func shellQuote(s string) string { return "'" + late.Encode(s, late.ShellQuote) + "'" }

func unitQuote(s string) string { return `"` + late.Encode(s, late.UnitQuote) + `"` }

// quote puts a text between quotes. The secrets in it are quoted in the same way when their values are put in.
func (x *expander) quote(name string, e late.Encoding, f func(string) string, v any) (string, error) {
	a, err := scalarOf(v)
	if err != nil {
		return "", &templateError{msg: name + " quotes a text, a number or a truth", hint: "put a list together with join, or take json"}
	}
	s := fmt.Sprint(a)
	out, err := x.sized(name, 2*len(s), func() string { return f(s) })
	return late.Quoted(out, e), err
}

// json writes a value as JSON.
func (x *expander) json(v any) (string, error) {
	if _, err := scalarOf(v); err == nil && reflect.ValueOf(v).Kind() == reflect.String {
		return x.quote("json", late.JSONString, jsonQuote, v)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", &templateError{msg: "json cannot write this value"}
	}
	out := strings.TrimSuffix(b.String(), "\n")
	_, err := x.sized("json", len(out), func() string { return out })
	return late.Quoted(out, late.JSONString), err
}

// b64enc encodes a text, or one secret.
func (x *expander) b64enc(s string) (string, error) {
	if at := late.RawMarkers(s); len(at) == 1 && at[0][0] == 0 && at[0][1] == len(s) {
		return late.Quoted(s, late.Base64), nil
	}
	return x.text("b64enc", b64, s)
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func (x *expander) replace(old, with, s string) (string, error) {
	if err := whole("replace", old, with, s); err != nil {
		return "", err
	}
	if old == "" {
		return "", &templateError{msg: "replace needs a text to replace"}
	}
	if err := x.charge(len(s)); err != nil {
		return "", err
	}
	return x.sized("replace", len(s)+strings.Count(s, old)*len(with), func() string { return strings.ReplaceAll(s, old, with) })
}

// indent puts n spaces before each line but empty ones.
func (x *expander) indent(n int, s string) (string, error) {
	if n < 0 || n > maxWidth {
		return "", &templateError{msg: fmt.Sprintf("indent by %d is not possible: at most %d", n, maxWidth)}
	}
	if err := whole("indent", s); err != nil {
		return "", err
	}
	pad := strings.Repeat(" ", n)
	return x.sized("indent", len(s)+n*(1+strings.Count(s, "\n")), func() string {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			if l != "" {
				lines[i] = pad + l
			}
		}
		return strings.Join(lines, "\n")
	})
}

func (x *expander) split(sep, s string) ([]string, error) {
	if err := whole("split", s); err != nil {
		return nil, err
	}
	if sep == "" {
		return nil, &templateError{msg: "split needs a text to split at"}
	}
	if err := x.charge(16 * len(s)); err != nil {
		return nil, err
	}
	return strings.Split(s, sep), nil
}

func (x *expander) join(sep string, list []string) (string, error) {
	n := 0
	for _, s := range list {
		n += len(s) + len(sep)
	}
	return x.sized("join", n, func() string { return strings.Join(list, sep) })
}

// prefixOf reads an address with or without prefix length.
func prefixOf(function, s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, nil
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.Prefix{}, &templateError{msg: function + ": " + shown(s) + " is not an address", hint: "write it as 192.0.2.10/24"}
}

// nth returns the n-th address of a network, counted from its first, which is 0.
func nth(n int, network string) (string, error) {
	p, err := prefixOf("nth", network)
	if err != nil {
		return "", err
	}
	b := p.Masked().Addr().AsSlice()
	left := n
	for i := len(b) - 1; i >= 0 && left > 0; i-- {
		sum := int(b[i]) + left&0xff
		b[i] = byte(sum)
		left = left>>8 + sum>>8
	}
	a, ok := netip.AddrFromSlice(b)
	if !ok || n < 0 || left > 0 || !p.Contains(a) {
		return "", &templateError{msg: fmt.Sprintf("nth: %s has no address number %d", p.Masked(), n)}
	}
	return a.String(), nil
}

// address is the address that is kept for the machine in a subnet, with its prefix length.
func (x *expander) address(subnet string) (string, error) {
	p, err := x.vars.addresses.In(subnet)
	if err != nil {
		return "", &templateError{msg: err.Msg, hint: err.Hint}
	}
	return p.String(), nil
}
