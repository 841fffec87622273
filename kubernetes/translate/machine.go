// Package translate turns custom resources into words of the inventory, and what became of a machine into conditions. A
// MetalMachine or SlipwayMachine becomes an inventory.Machine with a layer of configuration, a JoinTarget an
// inventory.JoinTarget. StatusOf goes the other way: conditions with their reasons, phase, addresses, terminal failures.
//
// It is pure and never sees the value of a secret. A wish that cannot be expressed is an error that names the field, before
// anything is touched. The same facts always give the same status. It has no times, and no counters that change at every
// pass, so that a controller writes it only after a change.
//
// Start reading at MetalMachine, here, then Apply and Frozen, which compare it with the stored machine. StatusOf in status.go
// begins the way back.
package translate

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// MetalMachine returns the machine that a MetalMachine asks for. An error is an *Invalid.
func MetalMachine(mm *v1alpha1.MetalMachine, o Options) (inventory.Machine, error) {
	s := &mm.Spec
	m := inventory.Machine{
		Name: cmp.Or(o.Name, Name(mm.Namespace, mm.Name)), Owner: o.Owner.String(),
		Hostname:      cmp.Or(s.Hostname, o.Hostname, mm.Name),
		BootstrapFrom: o.BootstrapFrom,
		Clean:         inventory.CleanMode(strings.ToLower(string(s.Deletion.Clean))),
		ReleaseAfter:  inventory.ReleaseAfter(strings.ToLower(string(s.Deletion.ReleaseAfter))),
	}
	if err := os(&m, &s.OS); err != nil {
		return m, err
	}
	if err := place(&m, s.Placement, cmp.Or(o.FailureDomain, s.FailureDomain), o); err != nil {
		return m, err
	}
	if err := provider(&m, s.ProviderConfig); err != nil {
		return m, err
	}
	config, err := configOf(mm, o)
	if err != nil {
		return m, err
	}
	if m.Config, err = join(config, m.Config); err != nil {
		return m, err
	}
	m.Drain = drain(mm, o, m.Hostname)
	m.Hooks, err = hooksOf(mm.Annotations, o.IsHeld)
	return m, err
}

// SlipwayMachine returns the machine that a SlipwayMachine asks for. An error is an *Invalid.
func SlipwayMachine(sm *infra.SlipwayMachine, o Options) (inventory.Machine, error) {
	s := &sm.Spec
	m := inventory.Machine{
		Name: cmp.Or(o.Name, Name(sm.Namespace, sm.Name)), Owner: o.Owner.String(),
		Hostname: cmp.Or(o.Hostname, sm.Name), BootstrapFrom: o.BootstrapFrom,
		Clean:        inventory.CleanMode(strings.ToLower(string(s.Clean))),
		ReleaseAfter: inventory.ReleaseAfter(strings.ToLower(string(s.ReleaseAfter))),
	}
	if err := os(&m, &s.OS); err != nil {
		return m, err
	}
	if err := place(&m, s.Placement, o.FailureDomain, o); err != nil {
		return m, err
	}
	var err error
	m.Hooks, err = hooksOf(sm.Annotations, o.IsHeld)
	return m, err
}

func os(m *inventory.Machine, s *v1alpha1.OSSpec) error {
	if s.Profile == "" {
		return invalid("spec.os.profile", "is needed")
	}
	m.Profile, m.Image, m.KernelArgs = s.Profile, s.Version, s.KernelArgs
	if len(s.Variables) > 0 {
		m.Parameters = s.Variables
	}
	return nil
}

var reuses = map[v1alpha1.Reuse]inventory.Reuse{
	"": "", v1alpha1.ReuseAny: "", v1alpha1.ReusePrefer: inventory.ReusePrefer, v1alpha1.ReuseRequire: inventory.ReuseRequire,
}

func place(m *inventory.Machine, s *v1alpha1.Placement, domain string, o Options) (err error) {
	p := &m.Placement
	p.NotPools = o.NotPools
	p.FailureDomain = domain
	if s == nil {
		return nil
	}
	const at = "spec.placement"
	m.Pool = s.Pool
	p.Host = s.HostName
	p.IsDomainPreferred = s.FailureDomainPolicy == v1alpha1.FailureDomainPreferred && domain != ""
	if p.Host != "" {
		p.FailureDomain, p.IsDomainPreferred = "", false // it stands where it stands
	}
	if p.Selector, err = Selector(s.Selector); err != nil {
		return invalid(at+".selector", err.Error())
	}
	if p.Requirements, err = Requirements(s.Requirements); err != nil {
		return invalid(at+".requirements", err.Error())
	}
	for i := range s.Preferred {
		sel, err := Selector(&s.Preferred[i].Selector)
		if err != nil {
			return invalid(fmt.Sprintf("%s.preferred[%d].selector", at, i), err.Error())
		}
		p.Preferred = append(p.Preferred, inventory.Preference{Weight: int(s.Preferred[i].Weight), Selector: sel})
	}
	for i, t := range s.Tolerations {
		field := fmt.Sprintf("%s.tolerations[%d]", at, i)
		switch {
		case t.Operator == v1alpha1.TolerationExists && t.Value != "":
			return invalid(field, "operator Exists has no value")
		case t.Operator != v1alpha1.TolerationExists && t.Value == "":
			return invalid(field, "operator Equal needs a value: write operator: Exists to tolerate every value")
		case t.Operator != v1alpha1.TolerationExists && t.Key == "":
			return invalid(field, "a value needs a key")
		}
		p.Tolerations = append(p.Tolerations, inventory.Toleration{Key: t.Key, Value: t.Value})
	}
	if p.Reuse = reuses[s.Reuse]; p.Reuse != "" {
		p.ReuseKey = cmp.Or(o.ReuseKey, m.Name)
	}
	return nil
}

// drain says how the node is emptied when the machine goes. Machines without a join target that can be looked into have
// no node of ours.
func drain(mm *v1alpha1.MetalMachine, o Options, hostname string) inventory.Drain {
	t := o.Target
	if t == nil || !CanLookInto(t) || !IsNode(mm) {
		return inventory.Drain{}
	}
	d := mm.Spec.Deletion.Drain
	return inventory.Drain{
		Target: Name(t.Namespace, t.Name), Node: hostname,
		IsSkipped:          d.Enabled != nil && !*d.Enabled,
		Timeout:            seconds(d.TimeoutSeconds, 300),
		IsBlocking:         d.OnTimeout == v1alpha1.DrainBlock,
		GraceSeconds:       grace(d.GracePeriodSeconds),
		DeleteEmptyDirData: d.DeleteEmptyDirData != nil && *d.DeleteEmptyDirData,
		VolumeTimeout:      bounded(d.VolumeDetachTimeoutSeconds, 300),
		ForgetTimeout:      seconds(mm.Spec.Deletion.NodeDeletionTimeoutSeconds, 60),
	}
}

func seconds(n *int32, otherwise int32) inventory.Duration {
	if n != nil {
		otherwise = *n
	}
	return inventory.Duration(time.Duration(otherwise) * time.Second)
}

// unbounded stands for no bound where 0 means not to wait.
const unbounded = 365 * 24 * time.Hour

func bounded(n *int32, otherwise int32) inventory.Duration {
	if n != nil && *n == 0 {
		return inventory.Duration(unbounded)
	}
	return seconds(n, otherwise)
}

// grace is what each pod is given. 0 would take the pod's object away while it still runs; the shortest is a second.
func grace(n *int32) int {
	if n == nil {
		return -1
	}
	if *n == 0 {
		return 1
	}
	return int(*n)
}
