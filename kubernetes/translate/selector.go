package translate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// mirrored are the labels that show a fact of a host, with the name that the inventory's selectors have for it.
var mirrored = map[string]string{"site": "site", "row": "row", "rack": "rack", "vendor": "manufacturer", "model": "product"}

// Selector writes a label selector as the inventory's selectors are written; nil is "". Labels that mirror a fact of a
// host ask for that fact.
func Selector(s *metav1.LabelSelector) (string, error) {
	if s == nil {
		return "", nil
	}
	var terms []string
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		terms = append(terms, key(k)+"="+value(k, s.MatchLabels[k]))
	}
	for _, e := range s.MatchExpressions {
		if err := checkTerm(e); err != nil {
			return "", err
		}
		k := key(e.Key)
		values := slices.Clone(e.Values)
		for i := range values {
			values[i] = value(e.Key, values[i])
		}
		slices.Sort(values)
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			for i := range values {
				values[i] = regexp.QuoteMeta(values[i])
			}
			terms = append(terms, k+"=~"+strings.Join(values, "|"))
		case metav1.LabelSelectorOpNotIn:
			for _, v := range values {
				terms = append(terms, k+"!="+v)
			}
		case metav1.LabelSelectorOpExists:
			terms = append(terms, k)
		case metav1.LabelSelectorOpDoesNotExist:
			terms = append(terms, "!"+k)
		default:
			return "", fmt.Errorf("%q is not an operator", e.Operator)
		}
	}
	text := strings.Join(terms, ",")
	if len(text) > 1024 {
		return "", errors.New("is longer than 1024 letters as text")
	}
	return text, nil
}

// checkTerm refuses a term that Kubernetes refuses. One that excludes nothing would match every host.
func checkTerm(e metav1.LabelSelectorRequirement) error {
	switch e.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		if len(e.Values) == 0 {
			return fmt.Errorf("the term on %q needs values", e.Key)
		}
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		if len(e.Values) > 0 {
			return fmt.Errorf("the term on %q takes no values", e.Key)
		}
	}
	return nil
}

// value is a label's value as the inventory has it.
func value(k, v string) string {
	if k == v1alpha1.LabelArch {
		if a, ok := arches[v1alpha1.Architecture(v)]; ok {
			return string(a)
		}
	}
	return v
}

func key(k string) string {
	if k == v1alpha1.LabelArch {
		return "arch"
	}
	if name, ok := strings.CutPrefix(k, v1alpha1.Group+"/"); ok {
		if fact, ok := mirrored[name]; ok {
			return fact
		}
	}
	return "label:" + k
}

var arches = map[v1alpha1.Architecture]inventory.Arch{v1alpha1.AMD64: inventory.X8664, v1alpha1.ARM64: inventory.ARM64}

// Requirements are a host's least hardware in the words of the inventory; nil asks for nothing.
func Requirements(s *v1alpha1.HardwareRequirements) (r inventory.HardwareRequirements, err error) {
	if s == nil {
		return r, nil
	}
	if s.Architecture != "" {
		var ok bool
		if r.Arch, ok = arches[s.Architecture]; !ok {
			return r, fmt.Errorf("architecture: Slipway boots amd64 and arm64, not %s", s.Architecture)
		}
	}
	r.CPUThreads, r.Disks, r.PortMbps, r.Accelerators = int(s.MinCPUThreads), int(s.MinDisks), int(s.MinNICSpeedMbps), int(s.MinAccelerators)
	r.IsRotational, r.AcceleratorID, r.Expression = s.DiskRotational, s.AcceleratorVendor, s.Expression
	if s.MinMemory != nil {
		r.MemoryBytes = s.MinMemory.Value()
	}
	if s.MinDiskSize != nil {
		r.DiskBytes = s.MinDiskSize.Value()
	}
	if r.Expression != "" { // one that cannot be read would hold no host, in silence
		if _, err := hardware.Compile(r.Expression); err != nil {
			return r, err
		}
	}
	return r, r.Validate()
}
