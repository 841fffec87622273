package metal

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/machine/v1alpha1"
	"slipway.dev/slipway/machine/want"
	"slipway.dev/slipway/machineconfig/kubeadm"
)

// pkiKey is the key of the Secret of a new cluster that holds its authorities; the kubeconfig's is said by the target.
const pkiKey = "pki"

// How long the kubeconfig of a new cluster is good for, and how much slower than ours the cluster's clock may be.
const (
	kubeconfigFor = 10 * 365 * 24 * time.Hour
	slowClock     = time.Hour
)

// makePKI makes the authorities of a cluster that is still to be made, and a kubeconfig for it, once: both stand in one
// Secret beside the target, which is made in one piece. So nothing is lost whatever is interrupted, and people find the
// kubeconfig there.
func (r *targets) makePKI(ctx context.Context, jt *v1alpha1.JoinTarget, owner string) error {
	ref := kubeconfigRef(jt)
	key := types.NamespacedName{Namespace: jt.Namespace, Name: ref.Name}
	pki, s, err := readSecret(ctx, r.client, key, pkiKey)
	if err != nil {
		return err
	}
	if s == nil {
		if pki, err = r.createPKI(ctx, jt, ref); err != nil {
			return err
		}
	}
	if len(pki) == 0 { // a kubeconfig of one's own: the cluster has authorities of its own as well
		return &refused{reasonInvalid, fmt.Sprintf("Secret %s has no key %s: with spec.init Slipway makes the Secret itself", ref.Name, pkiKey)}
	}
	return r.saved(r.env.Appliance.SaveSecret(ctx, want.PKIName(jt), owner, pki))
}

func (r *targets) createPKI(ctx context.Context, jt *v1alpha1.JoinTarget, ref v1alpha1.SecretKeySelector) ([]byte, error) {
	files, err := kubeadm.NewPKI(r.now(), nil)
	if err != nil {
		return nil, err
	}
	admin, err := newKubeconfig(jt, files, r.now())
	if err != nil {
		return nil, err
	}
	pki, err := yaml.Marshal(files)
	if err != nil {
		return nil, fmt.Errorf("encode authorities: %w", err)
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: jt.Namespace, Name: ref.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(jt, v1alpha1.GroupVersion.WithKind(v1alpha1.KindJoinTarget))},
		},
		Data: map[string][]byte{ref.Key: admin, pkiKey: pki},
	}
	err = r.client.Create(ctx, s, client.FieldOwner(managerTarget))
	if apierrors.IsForbidden(err) {
		return nil, &refused{reasonInvalid, "Slipway may not make the Secret " + ref.Name + ": allow it to create secrets, or make the cluster without spec.init"}
	}
	if err != nil {
		return nil, fmt.Errorf("make Secret %s: %w", ref.Name, err)
	}
	r.events.Eventf(jt, nil, corev1.EventTypeNormal, "AuthoritiesMade", "Reconcile", "the authorities and a kubeconfig of the new cluster are in Secret %s", ref.Name)
	return pki, nil
}

// newKubeconfig lets an administrator into the cluster of those authorities.
func newKubeconfig(jt *v1alpha1.JoinTarget, files map[string]string, now time.Time) ([]byte, error) {
	certBlock, _ := pem.Decode([]byte(files["ca.crt"]))
	keyBlock, _ := pem.Decode([]byte(files["ca.key"]))
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("the new authorities are not PEM")
	}
	ca, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the new authority: %w", err)
	}
	caKey, err := x509.ParsePKCS1PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the key of the new authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: "slipway", Organization: []string{"system:masters"}},
		NotBefore: now.Add(-slowClock).UTC(), NotAfter: now.Add(kubeconfigFor - 24*time.Hour).UTC(),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{jt.Name: {
			Server: "https://" + jt.Spec.ControlPlaneEndpoint, CertificateAuthorityData: bytes.TrimSpace([]byte(files["ca.crt"])),
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"slipway": {
			ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		}},
		Contexts:       map[string]*clientcmdapi.Context{jt.Name: {Cluster: jt.Name, AuthInfo: "slipway"}},
		CurrentContext: jt.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	return text, nil
}
