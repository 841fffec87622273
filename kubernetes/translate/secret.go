package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

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
