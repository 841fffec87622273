package convert

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/machine/v1alpha1"
)

// Sidero Metal, metal.sidero.dev/v1alpha1 and v1alpha2: Server, ServerClass.

// sideroServer converts a server.
func (c *converter) sideroServer(s *source) []Object {
	name := s.text("spec", "hostname")
	if name == "" {
		name = s.name
	}
	h := &v1alpha1.MetalHost{TypeMeta: typeMeta(v1alpha1.KindMetalHost), ObjectMeta: metaOf(s, c.hostName(s, name), "")}
	var notes []string
	accepted, yes := s.flag("spec", "accepted"), true
	h.Spec.Accepted = &accepted
	if s.flag("spec", "cordoned") {
		h.Spec.Cordoned = &yes
	}
	var macs []string
	for _, i := range s.list("spec", "hardware", "network", "interfaces") {
		m, _ := i.(map[string]any)
		if flags := scalar(m["flags"]); !strings.Contains(flags, "loopback") && !strings.HasPrefix(scalar(m["name"]), "lo") {
			macs = append(macs, scalar(m["mac"]))
		}
	}
	s.ignore("spec.hardware", "spec.system", "spec.cpu", "spec.systemInformation")
	h.Spec.BootMACs, notes = bootMACs(notes, macs...)
	if len(h.Spec.BootMACs) == 0 {
		notes = append(notes, "it names no MAC address: add bootMACs, or boot it once and accept it")
	}
	var more []string
	h.Spec.Power, more = sideroPower(s)
	notes = append(notes, more...)
	if s.flag("status", "inUse") {
		h.Spec.Protected = &yes
		notes = append(notes, "it is in use: it is protected, so that nothing wipes it; slipway host adopt makes it a machine as it is")
	}
	if s.list("spec", "configPatches") != nil {
		notes = append(notes, "spec.configPatches: put Talos patches into the profile, or into a layer of the host")
	}
	if s.object("spec", "environmentRef") != nil {
		notes = append(notes, "spec.environmentRef: kernel and initrd are an image, chosen by a profile")
	}
	s.ignore("spec.pxeBootAlways", "spec.bootFromDiskMethod", "spec.managementApi")
	return s.finish(h, notes)
}

// sideroPower translates spec.bmc. User and password that stand there are not printed.
func sideroPower(s *source) (*v1alpha1.HostPower, []string) {
	b := s.object("spec", "bmc")
	endpoint := scalar(b["endpoint"])
	if endpoint == "" {
		return nil, []string{"it has no spec.bmc: it is powered by hand; its managementApi is not spoken"}
	}
	p := &v1alpha1.HostPower{Driver: v1alpha1.PowerIPMI, Address: endpoint}
	if port := scalar(b["port"]); port != "" && port != "0" && port != "623" {
		p.Address = net.JoinHostPort(endpoint, port)
	}
	user, pass := secretRef(b["userFrom"]), secretRef(b["passFrom"])
	switch {
	case user.name != "" && user.name == pass.name:
		p.CredentialsRef = &v1alpha1.SecretReference{Name: user.name, Namespace: namespaceOr(user.namespace)}
		var notes []string
		if user.key != "username" || pass.key != "password" {
			notes = append(notes, fmt.Sprintf("Secret %s needs the keys username and password (they are %s and %s)", user.name, user.key, pass.key))
		}
		return p, notes
	case user.name != "" || pass.name != "" || scalar(b["pass"]) != "" || scalar(b["user"]) != "":
		return p, []string{"put the account of its controller into a Secret with the keys username and password, and name that in power.credentialsRef; what stands in the file is not copied"}
	}
	return p, nil
}

// keyRef is a reference to one key of a Secret.
type keyRef struct{ namespace, name, key string }

func secretRef(v any) keyRef {
	m, _ := v.(map[string]any)
	r, _ := m["secretKeyRef"].(map[string]any)
	return keyRef{scalar(r["namespace"]), scalar(r["name"]), scalar(r["key"])}
}

// sideroClass converts a class of servers into a pool.
func (c *converter) sideroClass(s *source) []Object {
	p := &v1alpha1.MetalPool{TypeMeta: typeMeta(v1alpha1.KindMetalPool), ObjectMeta: metaOf(s, dnsName(s.name), "")}
	var notes []string
	if sel := s.object("spec", "selector"); sel != nil {
		var out metav1.LabelSelector
		raw, err := json.Marshal(sel)
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil {
			notes = append(notes, "spec.selector cannot be read: left out")
		} else {
			p.Spec.Selector = &out
		}
	}
	switch any := s.list("spec", "qualifiers", "labelSelectors"); {
	case len(any) == 1 && p.Spec.Selector == nil:
		m, _ := any[0].(map[string]interface{})
		p.Spec.Selector = &metav1.LabelSelector{MatchLabels: textsOf(m)}
	case len(any) > 0:
		notes = append(notes, "spec.qualifiers.labelSelectors are alternatives, and a pool has one selector: make a pool for each")
	}
	if expression, ok := qualifierExpression(s); ok && expression != "" {
		p.Spec.Requirements = &v1alpha1.HardwareRequirements{Expression: expression}
		notes = append(notes, "requirements.expression says what spec.qualifiers said of system and processor: look at it")
	} else if !ok {
		notes = append(notes, "spec.qualifiers ask for more than requirements can say here: write an expression")
	}
	for path, say := range map[string]string{
		"configPatches":  "spec.configPatches: put Talos patches into the profile",
		"environmentRef": "spec.environmentRef: kernel and initrd are an image, chosen by a profile",
	} {
		if s.get("spec", path) != nil {
			notes = append(notes, say)
		}
	}
	sortTail(notes)
	s.ignore("spec.bootFromDiskMethod")
	return s.finish(p, notes)
}

// qualifierExpression writes alternatives of equal fields as CEL; ok is false when one has a field that is not known.
func qualifierExpression(s *source) (expression string, ok bool) {
	known := map[string]map[string]string{
		"systemInformation": {"manufacturer": "host.manufacturer", "productName": "host.product", "serialNumber": "host.serial"},
		"cpu":               {"version": "host.cpu.model"},
	}
	ok = true
	var all []string
	for _, what := range []string{"systemInformation", "cpu"} {
		var alternatives []string
		for _, a := range s.list("spec", "qualifiers", what) {
			m, _ := a.(map[string]any)
			var terms []string
			for k, v := range m {
				field := known[what][k]
				switch {
				case field == "":
					ok = false
				case scalar(v) != "":
					quoted, _ := json.Marshal(scalar(v)) // texts always encode
					terms = append(terms, field+" == "+string(quoted))
				}
			}
			slices.Sort(terms)
			if len(terms) > 0 {
				alternatives = append(alternatives, strings.Join(terms, " && "))
			}
		}
		switch len(alternatives) {
		case 0:
		case 1:
			all = append(all, alternatives[0])
		default:
			all = append(all, "("+strings.Join(alternatives, " || ")+")")
		}
	}
	if s.list("spec", "qualifiers", "hardware") != nil {
		ok = false
	}
	expression = strings.Join(all, " && ")
	if len(expression) > 2048 {
		return "", false
	}
	return expression, ok
}

// sortTail puts notes in order, where a map said them.
func sortTail(notes []string) { slices.Sort(notes) }
