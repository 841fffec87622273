package walkthrough

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secrets are what the new cluster is made and joined with, in pieces that can be told: its authorities and kubeconfig,
// and the tokens that Slipway has minted there.
func (k *kubeadm) secrets(ctx context.Context) (pieces []string, err error) {
	var of, tokens corev1.SecretList
	if err := errors.Join(k.stage.client.List(ctx, &of), k.client.List(ctx, &tokens, client.InNamespace(metav1.NamespaceSystem))); err != nil {
		return nil, err
	}
	for _, s := range of.Items {
		for _, value := range s.Data {
			for line := range strings.Lines(string(value)) {
				words := strings.Fields(line)
				if len(words) == 0 || len(words[len(words)-1]) < 40 {
					continue
				}
				piece := words[len(words)-1]
				pieces = append(pieces, piece[10:40])
				if plain, err := base64.StdEncoding.DecodeString(piece); err == nil && len(plain) > 140 {
					pieces = append(pieces, string(plain[100:130]))
				}
			}
		}
	}
	minted := 0
	for _, s := range tokens.Items {
		if half := s.Data["token-secret"]; s.Type == corev1.SecretTypeBootstrapToken && len(half) > 0 {
			pieces = append(pieces, string(half))
			minted++
		}
	}
	if minted == 0 || len(pieces) < 20 {
		return nil, fmt.Errorf("%d tokens, %d pieces of secrets", minted, len(pieces))
	}
	return pieces, nil
}

// metricsAreClean looks for secrets in what the server says to everybody who may read figures, after it has served them.
func (k *kubeadm) metricsAreClean(ctx context.Context) error {
	pieces, err := k.secrets(ctx)
	if err != nil {
		return err
	}
	socket := ""
	for _, e := range k.env {
		if path, ok := strings.CutPrefix(e, "SLIPWAY_SERVER="); ok {
			socket = path
		}
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	resp, err := c.Get("http://slipway/metrics")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte("slipway_")) {
		return fmt.Errorf("these are no figures: %.200s", text)
	}
	for _, p := range pieces {
		if i := bytes.Index(text, []byte(p)); i >= 0 {
			k.t.Errorf("a secret is in /metrics: %q", text[max(0, i-80):min(len(text), i+40)])
		}
	}
	k.looked = true
	return nil
}
