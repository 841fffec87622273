package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

const maxName = 63

// Name is what an object is called in the inventory: <namespace>-<name>, made to fit a DNS label. It truncates a long name,
// with six digits of a hash of the whole at the end.
func Name(namespace, name string) string {
	whole := namespace + "-" + name
	s := inventory.NameFrom(whole, "x")
	if s == whole && len(s) <= maxName {
		return s
	}
	return cut(s, maxName-7) + "-" + hash(namespace + "/" + name)[:6]
}

// NameFor is the second name that is tried, when somebody else's object has the first.
func NameFor(namespace, name, uid string) string {
	return cut(Name(namespace, name), maxName-7) + "-" + hash(uid)[:6]
}

// secretName is what a key of a Secret that an object refers to is called in the inventory: for its owner alone, so that
// it goes when that goes.
func secretName(o contract.Owner, secret, key string) string {
	return cut(inventory.NameFrom(o.Name+"-"+secret, "x"), maxName-13) + "-" + hash(o.String() + "\x00" + secret + "\x00" + key)[:12]
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.TrimRight(s, "-")
}

// KubeconfigName, PKIName and tokenName are the inventory's secrets of a join target.
func KubeconfigName(jt *v1alpha1.JoinTarget) string {
	return Name(jt.Namespace, jt.Name+"-kubeconfig")
}

// PKIName is the secret with the authorities of a cluster that Slipway makes.
func PKIName(jt *v1alpha1.JoinTarget) string { return Name(jt.Namespace, jt.Name+"-pki") }

func tokenName(jt *v1alpha1.JoinTarget) string { return Name(jt.Namespace, jt.Name+"-token") }
