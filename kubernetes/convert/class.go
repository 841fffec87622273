package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Sidero's ServerClass becomes a pool. A class that is read wrongly must never hold more hosts than it held in Sidero:
// a term that cannot be said holds for no host.

// nothing is an expression that holds for no host.
const nothing = "false"

// sideroClass converts a class of servers.
func (c *Converter) sideroClass(s *source) []runtime.Object {
	p := &v1alpha1.MetalPool{TypeMeta: typeMeta(v1alpha1.KindMetalPool), ObjectMeta: metaOf(s, s.newName, "", true)}
	spec := s.root.at("spec")
	var terms []string
	selector := spec.at("selector")
	p.Spec.Selector = carrySelector(selector)
	if !says(selector) {
		s.say("%s has a term that a pool cannot say", selector.path)
		terms = append(terms, nothing)
	}
	qualifiers := spec.at("qualifiers")
	for _, q := range qualifiers.children() {
		switch {
		case !q.says():
		case q.key == "labelSelectors" && len(q.list()) == 1 && p.Spec.Selector == nil:
			one := q.list()[0]
			p.Spec.Selector = &metav1.LabelSelector{MatchLabels: carryPairs(one)}
			if !says(one) {
				s.say("%s has a term that a pool cannot say", one.path)
				terms = append(terms, nothing)
			}
		default:
			terms = append(terms, alternatives(s, q))
		}
	}
	if p.Spec.Selector != nil && len(p.Spec.Selector.MatchLabels)+len(p.Spec.Selector.MatchExpressions) == 0 {
		p.Spec.Selector = nil
	}
	slices.SortStableFunc(terms, func(a, b string) int { return isNothing(b) - isNothing(a) })
	expression := strings.Join(terms, " && ")
	switch {
	case len(expression) > 2048:
		qualifiers.leave()
		expression = nothing
		s.say("spec.qualifiers is too long for an expression")
	case expression == "" && p.Spec.Selector == nil:
		expression = nothing
		s.say("it has no term, and in Sidero it holds every server. This pool holds no host: remove requirements.expression if it shall hold all")
	case expression != "":
		s.say("requirements.expression says what spec.qualifiers said of hardware: look at it")
	}
	if expression != "" {
		p.Spec.Requirements = &v1alpha1.HardwareRequirements{Expression: expression}
	}
	if strings.Contains(expression, nothing) && expression != nothing {
		s.say("false in requirements.expression replaces a term that cannot be converted, and matches no host: write your own")
	} else if expression == nothing {
		s.say("the pool holds no host until you replace requirements.expression")
	}
	for _, x := range []struct{ field, say string }{
		{"configPatches", "put Talos patches into the profile"},
		{"environmentRef", "kernel and initrd are an image, chosen by a profile"},
	} {
		if v := spec.at(x.field); v.says() {
			s.say("%s: %s", v.path, x.say)
		}
	}
	return []runtime.Object{p}
}

// says reports whether all that a term says is carried. Null and empty values say nothing.
func says(v *value) bool {
	return v == nil || !slices.ContainsFunc(v.leaves(), func(l *value) bool { return !l.isCarried && l.text() != "" })
}

func isNothing(term string) int {
	if strings.HasPrefix(term, nothing) {
		return 1
	}
	return 0
}

// carryPairs carries labels and their values as they are asked for.
func carryPairs(v *value) map[string]string {
	return carryTexts(v, func(k, t string) bool { return isLabelKey(k) && isLabelValue(t) && !isSecretWord(k) })
}

// carrySelector carries what a label selector asks for, as far as it is one.
func carrySelector(v *value) *metav1.LabelSelector {
	if !v.says() {
		return nil
	}
	out := &metav1.LabelSelector{MatchLabels: carryPairs(v.at("matchLabels"))}
	for _, e := range v.at("matchExpressions").list() {
		key, operator, values := e.at("key"), e.at("operator"), e.at("values")
		r := metav1.LabelSelectorRequirement{Key: key.text(), Operator: metav1.LabelSelectorOperator(operator.text())}
		isBad := !isLabelKey(r.Key) || isSecretWord(r.Key)
		for _, x := range values.list() {
			isBad = isBad || x.kind == 0 || len(x.fields)+len(x.items) > 0 || !isLabelValue(x.text())
			r.Values = append(r.Values, x.text())
		}
		switch r.Operator {
		case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
			isBad = isBad || len(r.Values) == 0
		case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
			isBad = isBad || len(r.Values) > 0 || values.says()
		default:
			isBad = true
		}
		if !isBad {
			key.carry()
			operator.carry()
			values.carry()
			out.MatchExpressions = append(out.MatchExpressions, r)
		}
	}
	return out
}

// alternatives writes a list of qualifiers, of which one has to hold, as CEL.
func alternatives(s *source, list *value) string {
	var all []string
	for _, a := range list.list() {
		var terms []string
		switch list.key {
		case "hardware":
			terms = hardwareTerms(a)
		case "systemInformation":
			terms = systemTerms(a)
		case "cpu":
			terms = equal(nil, a.at("version"), "host.cpu.model")
		case "labelSelectors":
			pairs := carryPairs(a)
			for _, f := range a.children() {
				if t, ok := pairs[f.key]; ok {
					terms = append(terms, fmt.Sprintf("host.labels[%s] == %s", quoted(f.key), quoted(t)))
				}
			}
		}
		if !says(a) || len(terms) == 0 {
			s.say("%s has a term that an expression cannot say", a.path)
			terms = append([]string{nothing}, terms...)
		}
		all = append(all, strings.Join(terms, " && "))
	}
	switch len(all) {
	case 0:
		s.say("%s cannot be said", list.path)
		return nothing
	case 1:
		return all[0]
	}
	return "(" + strings.Join(all, " || ") + ")"
}

func quoted(t string) string {
	b, _ := json.Marshal(t) // texts always encode
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b))
}

// equal adds a term that compares a fact of a host with a text, and carries that.
func equal(terms []string, v *value, fact string) []string {
	if t := v.take(isPlain(256)); t != "" {
		terms = append(terms, fact+" == "+quoted(t))
	}
	return terms
}

// count adds a term that compares a fact of a host with a number.
func count(terms []string, v *value, fact string) []string {
	t := v.take(func(t string) bool { return len(t) < 9 && t[0] != '0' && strings.Trim(t, "0123456789") == "" })
	if t != "" {
		terms = append(terms, fact+" == "+t)
	}
	return terms
}

func systemTerms(v *value) (terms []string) {
	terms = equal(terms, v.at("manufacturer"), "host.manufacturer")
	terms = equal(terms, v.at("productName"), "host.product")
	terms = equal(terms, v.at("serialNumber"), "host.serial")
	terms = equal(terms, v.at("version"), "host.system.version")
	return equal(terms, v.at("uuid"), "host.uuid")
}

// hardwareTerms says what Slipway knows of a host in the same words. Sizes of memory and disks are texts in Sidero, and
// makers of processors are others than in ours: those cannot be compared.
func hardwareTerms(v *value) (terms []string) {
	terms = systemTerms(v.at("system"))
	compute := v.at("compute")
	terms = count(terms, compute.at("totalCoreCount"), "host.cpu.cores")
	terms = count(terms, compute.at("totalThreadCount"), "host.cpu.threads")
	terms = count(terms, compute.at("processorCount"), "host.cpu.sockets")
	if all := compute.at("processors").list(); len(all) == 1 {
		terms = equal(terms, all[0].at("productName"), "host.cpu.model")
	}
	return count(terms, v.at("storage", "deviceCount"), "size(host.disks)")
}
