package kubeadm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// machine is a folder that stands for a machine, with programs that only write down how they were called.
type machine struct {
	t      *testing.T
	dir    string
	script string
}

func newMachine(t *testing.T, a *machineconfig.Activation) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	for _, f := range a.Files {
		m.write(f.Path, strings.ReplaceAll(f.Text, "/etc/kubernetes", m.dir+"/etc/kubernetes"), 0o700)
	}
	m.script = filepath.Join(m.dir, scriptPath)
	for _, name := range []string{"modprobe", "sleep", "sysctl", "systemctl"} {
		m.write("/bin/"+name, "#!/bin/bash\necho "+name+" \"$@\" >>"+m.dir+"/calls\n", 0o700)
	}
	return m
}

func (m *machine) write(path, text string, mode os.FileMode) {
	m.t.Helper()
	path = filepath.Join(m.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(path string) string {
	b, _ := os.ReadFile(filepath.Join(m.dir, path))
	return string(b)
}

// run runs the script with a kubeadm that fails as often as told, and returns what was called.
func (m *machine) run(fails string) (string, error) {
	m.t.Helper()
	m.write("/left", fails, 0o600)
	_ = os.Remove(filepath.Join(m.dir, "calls"))
	m.write("/bin/kubeadm", `#!/bin/bash
d=`+m.dir+`
echo kubeadm "$1" manifests=$(ls -A "$d/etc/kubernetes/manifests" 2>/dev/null) pki=$(ls "$d/etc/kubernetes/pki" 2>/dev/null | wc -l) >>$d/calls
if [ "$1" = reset ]; then rm -rf "$d/etc/kubernetes/pki" "$d/etc/kubernetes/manifests"; exit 0; fi
left=$(cat $d/left)
if [ "$left" -gt 0 ]; then echo $((left-1)) >$d/left; exit 1; fi
`, 0o700)
	cmd := exec.Command("/bin/bash", m.script)
	cmd.Env = []string{"PATH=" + m.dir + "/bin:/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if len(out) > 0 {
		m.t.Logf("%s", out)
	}
	return m.read("calls"), err
}

func emitFor(t *testing.T, role machineconfig.Role, change ...func(*inventory.JoinTarget)) *machineconfig.Activation {
	t.Helper()
	a, _, err := New().Emit(testInput(t, machineconfig.BootstrapSpec{Role: role}, change...))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTheScriptResetsWhatATryLeftAndCopiesItsFilesAgain(t *testing.T) {
	m := newMachine(t, emitFor(t, machineconfig.Init))
	calls, err := m.run("1")
	want := `modprobe -a br_netfilter overlay
sysctl -q --system
systemctl daemon-reload
systemctl enable kubelet.service
kubeadm init manifests=kube-vip.yaml pki=6
sleep 20
kubeadm reset manifests=kube-vip.yaml pki=6
kubeadm init manifests=kube-vip.yaml pki=6
`
	want = strings.ReplaceAll(want, "pki=6", "pki=7") // etcd is a folder
	if err != nil || calls != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, calls, want)
	}
	if pod := m.read("/etc/kubernetes/manifests/kube-vip.yaml"); strings.Contains(pod, "super-admin") || !strings.Contains(pod, "path: "+m.dir+"/etc/kubernetes/admin.conf\n") {
		t.Errorf("after init the pod still has\n%s", pod)
	}
	if calls, err := m.run("9"); err != nil || calls != "" {
		t.Errorf("run again it did %v %s", err, calls)
	}
}

func TestTheScriptGivesUpAndTriesAgainAtTheNextBoot(t *testing.T) {
	m := newMachine(t, emitFor(t, machineconfig.ControlPlane))
	calls, err := m.run("99")
	if err == nil || strings.Count(calls, "kubeadm join") != 3 || strings.Count(calls, "kubeadm reset") != 2 || m.read(donePath) != "" {
		t.Errorf("%v\n%s", err, calls)
	}
	if _, err := os.Stat(filepath.Join(m.dir, donePath)); err == nil {
		t.Error("it says that it is done")
	}
	calls, err = m.run("0")
	if err != nil || !strings.Contains(calls, "systemctl enable kubelet.service\nkubeadm reset") {
		t.Errorf("at the next boot: %v\n%s", err, calls)
	}
	if _, err := os.Stat(filepath.Join(m.dir, donePath)); err != nil {
		t.Error("it does not say that it is done")
	}
}

func TestAWorkersScriptCopiesNothing(t *testing.T) {
	m := newMachine(t, emitFor(t, machineconfig.Worker))
	calls, err := m.run("0")
	if err != nil || !strings.Contains(calls, "kubeadm join manifests= pki=0\n") {
		t.Errorf("%v\n%s", err, calls)
	}
}
