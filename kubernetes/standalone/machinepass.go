package standalone

import (
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// The field managers of MetalMachines: one for each concern, so that apply of one leaves the fields of the others.
const (
	managerMachine  = "slipway-machine"          // status, finalizer
	managerClaim    = "slipway-machine-claim"    // spec.claimID, spec.providerID
	managerVersions = "slipway-machine-versions" // spec.versions, once
)

// pass is one Reconcile of one MetalMachine. Only its goroutine uses it.
type pass struct {
	mm     *v1alpha1.MetalMachine
	owner  contract.Owner
	target *v1alpha1.JoinTarget // nil for none
	view   *contract.View       // nil when the appliance has no machine for it
	wanted inventory.Machine
	facts  translate.Facts
	node   *node.Observation // nil while there is nothing to look at
	again  time.Duration     // when to look again, 0 when an event tells

	isCreated bool // in the appliance, in this pass
	isClaimed bool // this pass has recorded its claim
}

// wait records why the machine may not boot yet; the status shows it.
func (p *pass) wait(reason, format string, args ...any) {
	p.facts.Bootstrap.Reason, p.facts.Bootstrap.Message = reason, fmt.Sprintf(format, args...)
}

// slot says where the machine is on its way into its cluster.
func (p *pass) slot(s node.Stage) slot {
	return slot{
		key: client.ObjectKeyFromObject(p.mm), target: targetKey(p.target), isPlane: translate.IsControlPlane(p.mm),
		stage: s, createdAt: p.mm.CreationTimestamp.Time,
	}
}

// isWritten reports whether the machine has its configuration on disk. It need not have booted yet.
func isWritten(p *pass) bool {
	return p.view != nil && (p.view.Delivered || translate.StatusOf(p.facts).IsProvisioned)
}

// pausedBy returns the annotation that pauses an object, or "".
func pausedBy(o client.Object) string {
	// The second one is the annotation of Cluster API: people and tools know it.
	for _, a := range []string{v1alpha1.AnnotationPaused, v1alpha1.CAPIPaused} {
		if v, ok := o.GetAnnotations()[a]; ok && v != "false" {
			return a
		}
	}
	return ""
}

// needsHold reports whether something must exist before the machine boots: bootstrap data, a join target or Secrets.
func needsHold(mm *v1alpha1.MetalMachine) bool {
	b := mm.Spec.Bootstrap
	return b != nil && (b.DataSecretName != "" || b.Join != nil) || len(secretsOf(mm)) > 0
}

// marks are notes of the controller about a machine. They are the first line of its configuration, so one transaction
// stores both.
type marks struct {
	claim    string // that ends because the machine is reinstalled
	at       string // the annotation reprovision-at that was carried out
	rebooted string // the annotation reboot-at that was carried out
}

// markPrefix begins the line of the marks. It is a comment of YAML, so that nothing else reads it.
const markPrefix = "# kubernetes:"

func withMarks(config string, m marks) string {
	line := ""
	for _, w := range []struct{ key, value string }{{"claim", m.claim}, {"reprovision-at", m.at}, {"reboot-at", m.rebooted}} {
		if w.value != "" {
			// Annotations hold any text. Without spaces and breaks it cannot end the line or add a mark.
			line += " " + w.key + "=" + strings.Join(strings.Fields(w.value), "")
		}
	}
	// Without marks there is no line, so that a machine that was never reinstalled has the plain configuration.
	if line == "" {
		return config
	}
	return markPrefix + line + "\n" + config
}

func splitMarks(config string) (m marks, rest string) {
	line, ok := strings.CutPrefix(config, markPrefix)
	if !ok {
		return m, config
	}
	line, rest, _ = strings.Cut(line, "\n")
	for _, w := range strings.Fields(line) {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "claim":
			m.claim = value
		case "reprovision-at":
			m.at = value
		case "reboot-at":
			m.rebooted = value
		}
	}
	return m, rest
}
