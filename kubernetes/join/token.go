package join

import (
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/util"

	"slipway.dev/slipway/inventory"
)

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"

// draw returns n letters and digits, each equally likely.
func draw(rand io.Reader, n int) (string, error) {
	// 256 is no multiple of 36: with a plain remainder four letters would come more often than the others.
	const fair = 256 - 256%len(alphabet) // bytes from here on would prefer the first letters
	out := make([]byte, 0, n)
	var buf [32]byte
	for len(out) < n {
		if _, err := io.ReadFull(rand, buf[:]); err != nil {
			return "", fmt.Errorf("draw a token: %w", err)
		}
		for _, b := range buf {
			if int(b) < fair && len(out) < n {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out), nil
}

// SealedAs is what the secret half of a token is sealed with.
func SealedAs(id string) string { return "join-token/" + id }

// secretName returns the name of a token's Secret in kube-system.
func secretName(id string) string { return api.BootstrapTokenSecretPrefix + id }

// newSecret returns the Secret that makes a token known to a cluster. Usage signing lets kubeadm verify cluster-info
// with the token; nodes that are given the CA need no such thing.
func newSecret(t inventory.JoinToken, half, hostName string, isSigning bool) *corev1.Secret {
	data := map[string]string{
		api.BootstrapTokenIDKey:               t.ID,
		api.BootstrapTokenSecretKey:           half,
		api.BootstrapTokenExpirationKey:       t.ExpiresAt.UTC().Format(time.RFC3339),
		api.BootstrapTokenUsageAuthentication: "true",
		api.BootstrapTokenExtraGroupsKey:      Group,
		api.BootstrapTokenDescriptionKey:      describe(t, hostName),
	}
	if isSigning {
		data[api.BootstrapTokenUsageSigningKey] = "true"
	}
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: secretName(t.ID), Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "slipway"},
		},
		Type:       corev1.SecretType(api.SecretTypeBootstrapToken),
		StringData: data,
	}
}

// describe says what a token is for. Anyone who knows a session's whole id can speak for that boot, so it is cut.
func describe(t inventory.JoinToken, hostName string) string {
	return fmt.Sprintf("Slipway: host %s joins as node %s, boot %s", hostName, t.NodeName, short(t.SessionID))
}

func short(s inventory.SessionID) string { return string(s[:min(len(s), 8)]) }

// checkToken returns a token that was made elsewhere without the space around it, or says what is wrong with it.
func checkToken(name string, value []byte) (string, error) {
	t := strings.TrimSpace(string(value))
	if !util.IsValidBootstrapToken(t) {
		return "", inventory.Errorf(inventory.Invalid, "secret %s holds no bootstrap token", name).
			WithHint("it is six and sixteen of a-z and 0-9 with a dot between; make one with: kubeadm token create")
	}
	return t, nil
}

// An installation from a slow mirror takes minutes. A token that leaks is worth something for half an hour at most.
const defaultTokenFor = 30 * time.Minute

// tokenFor returns how long a target's tokens live.
func tokenFor(target *inventory.JoinTarget) time.Duration {
	if target.TokenFor > 0 {
		return time.Duration(target.TokenFor)
	}
	return defaultTokenFor
}
