package translate

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// maxFile bounds what a packed file may become.
const maxFile = 1 << 20

// decode unpacks a file's content. It is also how the values of Secrets are unpacked before they are sealed.
func decode(encoding string, b []byte) ([]byte, error) {
	var err error
	if encoding == "base64" || encoding == "gzip+base64" {
		if b, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(b)), "")); err != nil {
			return nil, fmt.Errorf("is not base64")
		}
	}
	if encoding == "gzip" || encoding == "gzip+base64" {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("is not packed by gzip")
		}
		if b, err = io.ReadAll(io.LimitReader(z, maxFile+1)); err != nil {
			return nil, fmt.Errorf("is not packed by gzip")
		}
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("has more than %d bytes", maxFile)
	}
	return b, nil
}

// SecretUse is a key of a Secret that is kept sealed in the inventory, under a name.
type SecretUse struct {
	Name                   string // in the inventory
	Namespace, Secret, Key string
	Encoding               string // that its value is written in
	Field                  string // that names it
}

// Value is the value to be sealed, of what the Secret holds under Key.
func (u SecretUse) Value(b []byte) ([]byte, error) {
	plain, err := decode(u.Encoding, b)
	if err != nil {
		return nil, invalid(u.Field, "the value in the Secret "+err.Error())
	}
	return plain, nil
}

// MachineSecrets are the Secrets that a MetalMachine's files and users name.
func MachineSecrets(mm *v1alpha1.MetalMachine, owner contract.Owner) []SecretUse {
	all := map[string]SecretUse{}
	add := func(ref *v1alpha1.SecretKeySelector, field, encoding string) {
		if ref == nil {
			return
		}
		name := secretName(owner, ref.Name, ref.Key)
		all[name] = SecretUse{Name: name, Namespace: mm.Namespace, Secret: ref.Name, Key: ref.Key, Encoding: encoding, Field: field}
	}
	for i := range mm.Spec.Files {
		f := &mm.Spec.Files[i]
		add(f.ContentFrom, "spec.files["+f.Path+"].contentFrom", f.Encoding)
	}
	for i := range mm.Spec.Users {
		add(mm.Spec.Users[i].PasswordHashFrom, "spec.users["+mm.Spec.Users[i].Name+"].passwordHashFrom", "")
	}
	var uses []SecretUse
	for _, k := range slices.Sorted(maps.Keys(all)) {
		uses = append(uses, all[k])
	}
	return uses
}

// TargetSecrets are the Secrets that a JoinTarget names. The kubeconfig of a cluster that is still to be made is written
// by Slipway.
func TargetSecrets(jt *v1alpha1.JoinTarget) []SecretUse {
	var uses []SecretUse
	if ref := jt.Spec.KubeconfigSecretRef; ref != nil {
		uses = append(uses, SecretUse{Name: KubeconfigName(jt), Namespace: jt.Namespace, Secret: ref.Name, Key: ref.Key, Field: "spec.kubeconfigSecretRef"})
	}
	if s := jt.Spec.StaticToken; s != nil {
		uses = append(uses, SecretUse{
			Name: tokenName(jt), Namespace: jt.Namespace, Secret: s.TokenSecretRef.Name, Key: s.TokenSecretRef.Key, Field: "spec.staticToken.tokenSecretRef",
		})
	}
	return uses
}

// DataFrom is where a machine that is wanted without Kubernetes has its bootstrap data from: local/<namespace>/<secret>.
func DataFrom(mm *v1alpha1.MetalMachine) string {
	return strings.Join([]string{contract.LocalCluster, mm.Namespace, mm.Spec.Bootstrap.DataSecretName}, "/")
}

// DataSecretName is the inventory's secret that holds those data for that owner; from is what DataFrom returned.
func DataSecretName(o contract.Owner, from string) string {
	return secretName(o, from[strings.LastIndexByte(from, '/')+1:], "bootstrap data")
}

// WriteData is what is sealed of a Secret with bootstrap data, and ReadData reads it.
func WriteData(secret map[string][]byte) ([]byte, error) {
	return json.Marshal(contract.Bootstrap{Value: secret["value"], Format: strings.TrimSpace(string(secret["format"]))})
}

// ReadData reads what WriteData wrote.
func ReadData(text []byte) (b contract.Bootstrap, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if d.Decode(&b) != nil || len(b.Value) == 0 {
		return b, errors.New("the secret does not hold bootstrap data as slipway apply stores them")
	}
	return b, nil
}
