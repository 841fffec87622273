package translate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Hooks are the hooks that annotations ask for: <step>.hook.metal.slipway.dev/<owner>. The value says nothing; removing
// the annotation acknowledges the hook.
func Hooks(annotations map[string]string) ([]inventory.Hook, error) {
	return hooksOf(annotations, false)
}

func hooksOf(annotations map[string]string, isHeld bool) ([]inventory.Hook, error) {
	var hooks []inventory.Hook
	for k := range annotations {
		step, owner, ok := v1alpha1.ParseHook(k)
		if !ok {
			continue
		}
		field := "metadata.annotations[" + k + "]"
		if !slices.Contains(inventory.HookSteps(), inventory.HookStep(step)) {
			return nil, invalid(field, fmt.Sprintf("%q is not a step that a hook can block: use one of %v", step, inventory.HookSteps()))
		}
		if owner == HoldOwner {
			return nil, invalid(field, "the owner kubernetes is Slipway's own")
		}
		if err := inventory.CheckName("hook", owner); err != nil {
			return nil, invalid(field, err.Error())
		}
		hooks = append(hooks, inventory.Hook{Step: inventory.HookStep(step), Owner: owner})
	}
	if isHeld {
		hooks = append(hooks, inventory.Hook{Step: inventory.PreBoot, Owner: HoldOwner})
	}
	slices.SortFunc(hooks, func(a, b inventory.Hook) int {
		return cmp.Or(slices.Index(inventory.HookSteps(), a.Step)-slices.Index(inventory.HookSteps(), b.Step), strings.Compare(a.Owner, b.Owner))
	})
	return hooks, nil
}

// IsHeld reports whether the controller's hook still keeps a machine from its first boot.
func IsHeld(m *inventory.Machine) bool {
	return slices.ContainsFunc(m.Hooks, func(h inventory.Hook) bool {
		return h.Step == inventory.PreBoot && h.Owner == HoldOwner && h.AckedAt.IsZero()
	})
}

// Holder is who keeps the reasons of hooks; every contract.Appliance does.
type Holder interface {
	HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string) (inventory.Machine, error)
}

// Hold says where everybody who looks at a machine reads it why the controller's hook keeps it from its first boot. If that
// is so already, or the machine is not held or has no host to boot, it asks for nothing.
func Hold(ctx context.Context, by Holder, m *inventory.Machine, why string) error {
	why = inventory.Clean(why, inventory.ReasonAtMost)
	for _, h := range m.Hooks {
		if h.Step != inventory.PreBoot || h.Owner != HoldOwner || !h.AckedAt.IsZero() || h.Reason == why || m.HostID == "" {
			continue
		}
		if _, err := by.HoldHook(ctx, m.Name, h.Step, h.Owner, why); err != nil {
			return fmt.Errorf("say why %s waits: %w", m.Name, err)
		}
	}
	return nil
}

// mergeHooks is what is wanted with what was acknowledged. Hooks of others, such as those that were set by REST, are not
// ours to remove once they are acknowledged.
func mergeHooks(stored, wanted []inventory.Hook) []inventory.Hook {
	merged := slices.Clone(wanted)
	for i := range merged {
		for _, s := range stored {
			if s.Step == merged[i].Step && s.Owner == merged[i].Owner {
				merged[i].AckedAt, merged[i].Reason = s.AckedAt, s.Reason
			}
		}
	}
	return merged
}

// HoldOwner is whose hook before the first boot holds a machine until the controller lets it go.
const HoldOwner = "kubernetes"
