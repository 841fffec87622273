package clusterapi

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

func TestExtraConfigurationIsMerged(t *testing.T) {
	const join = "## template: jinja\n#cloud-config\nwrite_files:\n- path: /a\n  permissions: 0640\n  content: '{{ ds.meta_data.x }}'\nruncmd:\n- join\nntp: {enabled: true}\n"
	cloud := func(text string) part { return part{"extra", infrav1.FormatCloudConfig, []byte(text)} }
	for _, c := range []struct {
		name   string
		value  string
		format string
		parts  []part
		want   []string // in this order
		refuse string
	}{
		{"nothing to merge changes nothing", join, "", nil, []string{join}, ""},
		{"lists come in front, headers and odd values stay", join, "", []part{cloud("#cloud-config\nruncmd: [mine]\n")}, []string{"## template: jinja\n#cloud-config\n", "0640", "{{ ds.meta_data.x }}", "mine", "join"}, ""},
		{"several come in their order", join, "cloud-config", []part{cloud("runcmd: [one]"), cloud("runcmd: [two]")}, []string{"one", "two", "join"}, ""},
		{"a key of one's own is added", join, "", []part{cloud("timezone: Etc/UTC")}, []string{"timezone: Etc/UTC"}, ""},
		{"a key that both set is refused", join, "", []part{cloud("ntp: {enabled: false}")}, nil, "sets ntp, which the bootstrap data set too"},
		{"what is no mapping is refused", join, "", []part{cloud("- canary")}, nil, "is no cloud-config"},
		{"what is no YAML is refused", join, "", []part{cloud("canary: [")}, nil, "is no cloud-config"},
		{"Ignition is named for merging", `{"ignition":{"version":"3.4.0"},"passwd":{}}`, "ignition", []part{{"extra", infrav1.FormatIgnition, []byte(`{"ignition":{"version":"3.3.0"}}`)}}, []string{`"merge":[{"source":"data:;base64,eyJpZ25pdGlvbiI6eyJ2ZXJzaW9uIjoiMy4zLjAifX0="}]`}, ""},
		{"Ignition 2 appends", `{"ignition":{"version":"2.3.0"}}`, "ignition", []part{{"extra", infrav1.FormatIgnition, []byte(`{"ignition":{"version":"2.3.0"}}`)}}, []string{`"append":[{"source":"data:`}, ""},
		{"Butane is translated", `{"ignition":{"version":"3.4.0"}}`, "ignition", []part{{"extra", infrav1.FormatButane, []byte("variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n  - path: /etc/x\n    contents: {inline: y}\n")}}, []string{`"merge":[{"source":"data:;base64,`}, ""},
		{"bad Butane is refused", `{"ignition":{"version":"3.4.0"}}`, "ignition", []part{{"extra", infrav1.FormatButane, []byte("variant: canary\n")}}, nil, "is no valid Butane"},
		{"two languages are refused", join, "", []part{{"extra", infrav1.FormatIgnition, []byte(`{}`)}}, nil, "cannot be merged with bootstrap data that are cloud-config"},
		{"what is no Ignition is refused", `{"ignition":{"version":"3.4.0"}}`, "ignition", []part{{"extra", infrav1.FormatIgnition, []byte(`canary`)}}, nil, "is no Ignition configuration"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := merge(contract.Bootstrap{Value: []byte(c.value), Format: c.format}, c.parts)
			if c.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), c.refuse) || strings.Contains(err.Error(), "canary") || contract.BootstrapReason(err) != metalv1.ReasonUnsupportedFormat {
					t.Fatalf("refused with %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			rest := string(got.Value)
			for _, w := range c.want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("no %q in the rest of\n%s", w, got.Value)
				}
				rest = after
			}
		})
	}
}

func TestAWaitIsSaidInReadyWhenItIsTheFirst(t *testing.T) {
	cond := func(kind string, s metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: s, Reason: reason}
	}
	cs := because([]metav1.Condition{cond(metalv1.Ready, "False", "X"), cond(metalv1.HostClaimed, "False", "X"), cond(metalv1.OSInstalled, "False", "Y")}, metalv1.HostClaimed, "Why", "it is so")
	if cs[0].Reason != "Why" || cs[0].Message != "HostClaimed: it is so" || cs[1].Reason != "Why" || cs[2].Reason != "Y" {
		t.Errorf("%+v", cs)
	}
	cs = because([]metav1.Condition{cond(metalv1.Ready, "False", metalv1.ReasonDeleting), cond(metalv1.HostClaimed, "False", "X")}, metalv1.HostClaimed, "Why", "it is so")
	if cs[0].Reason != metalv1.ReasonDeleting {
		t.Errorf("%+v", cs)
	}
}

func TestASetIsNamedByWhatOutlivesARollout(t *testing.T) {
	k := &kit{env: controllers.Env{ClusterUID: "u"}}
	for _, c := range []struct {
		name   string
		labels map[string]string
		from   string
		want   string
	}{
		{"a deployment", map[string]string{clusterv1.MachineDeploymentNameLabel: "md", clusterv1.MachineSetNameLabel: "md-1"}, "t", "u/n/c/md"},
		{"a set of its own", map[string]string{clusterv1.MachineSetNameLabel: "ms"}, "t", "u/n/c/ms"},
		{"a control plane with a name", map[string]string{clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: "kcp"}, "t", "u/n/c/kcp"},
		{"a control plane without one", map[string]string{clusterv1.MachineControlPlaneLabel: ""}, "t", "u/n/c/control-plane"},
		{"what was cloned by something else", nil, "t", "u/n/c//t"},
		{"one that stands alone", nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Labels: c.labels}, Spec: clusterv1.MachineSpec{ClusterName: "c"}}
			sm := &infrav1.SlipwayMachine{}
			if c.from != "" {
				sm.Annotations = map[string]string{clusterv1.TemplateClonedFromNameAnnotation: c.from}
			}
			if got := k.reuseKey(m, sm); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestControlPlanesAreSentWhereAHostIsFree(t *testing.T) {
	for _, c := range []struct {
		name   string
		free   map[string]int
		planes []string
		want   string
	}{
		{"each has one", map[string]int{"a": 1, "b": 2}, nil, "a b"},
		{"one has none", map[string]int{"b": 2}, nil, "b"},
		{"none has one", nil, nil, "a b"},
		{"only a rack for workers has one", map[string]int{"b": 2}, []string{"a"}, "a"},
		{"a rack is not for control planes", map[string]int{"a": 1, "b": 2}, []string{"b"}, "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var planes []string
			for _, d := range publish(map[string]int{"a": 3, "b": 3}, c.free, c.planes) {
				if isSet(d.ControlPlane) {
					planes = append(planes, d.Name)
				}
			}
			if got := strings.Join(planes, " "); got != c.want {
				t.Errorf("control planes may use %q, want %q", got, c.want)
			}
		})
	}
}

// echo is a control plane that says its name to everybody.
func echo(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, name)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func TestAnEndpointForwardsToControlPlanesThatAnswer(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := gone.Addr().String()
	_ = gone.Close()
	ps := newProxies(&kit{log: slog.New(slog.DiscardHandler)})
	name := types.NamespacedName{Namespace: "n", Name: "c"}
	if err := ps.set(name, &forward{port: 0, behind: []string{dead, echo(t, "one"), echo(t, "two")}}); err != nil {
		t.Fatal(err)
	}
	address := ps.running[name].listener.Addr().(*net.TCPAddr)
	seen := map[string]int{}
	for range 12 {
		c, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: address.Port})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		said, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		seen[string(said)]++
		_ = c.Close()
	}
	if len(seen) != 2 || seen["one"] == 0 || seen["two"] == 0 {
		t.Errorf("answers came from %v", seen)
	}
	if err := ps.set(name, nil); err != nil {
		t.Fatal(err)
	}
	ps.serving.Wait() // nothing is left
	if c, err := net.Dial("tcp", address.String()); err == nil {
		_ = c.Close()
		t.Error("the port is still served")
	}
}

func TestANodeIsOutOfServiceOnceForEachAttempt(t *testing.T) {
	at := func(s int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 23, 12, 0, s, 0, time.UTC))
	}
	attempted := func(s int) *metav1.Time { a := at(s); return &a }
	for _, c := range []struct {
		name   string
		fenced metav1.ConditionStatus // since second 10
		last   *metav1.Time
		want   bool
	}{
		{"never", "", nil, false},
		{"it is now", metav1.ConditionTrue, nil, false},
		{"it was, for the first attempt, which was refused", metav1.ConditionFalse, nil, true},
		{"it was, for the attempt before", metav1.ConditionFalse, attempted(10), false},
		{"it was again since", metav1.ConditionFalse, attempted(9), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sr := &infrav1.SlipwayRemediation{}
			sr.Status.LastAttempt = c.last
			if c.fenced != "" {
				sr.Status.Conditions = []metav1.Condition{{Type: conditionFenced, Status: c.fenced, LastTransitionTime: at(10)}}
			}
			if got := hasFenced(sr); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
