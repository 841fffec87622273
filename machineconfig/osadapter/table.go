package osadapter

// Ways returns the ways to install. With none, the image has all packages that it needs. The kernel settings are made in
// any case.
func Ways() []string {
	return []string{wayAPT, wayRPM, wayOSTree, waySysext, wayImage, wayBinary, wayNone}
}

const (
	wayAPT    = "apt"
	wayRPM    = "rpm"
	wayOSTree = "rpm-ostree" // layered packages
	waySysext = "sysext"
	wayImage  = "image"  // the machine becomes a container image (bootc)
	wayBinary = "binary" // the bootstrapper brings a file itself
	wayNone   = "none"
)

// system is what a system of the OS catalogue has.
type system struct {
	way  string   // of installing, when the profile says nothing
	ways []string // that are possible
	// isClosed marks one that nothing can be added to.
	isClosed    bool
	hasSwap     bool // may have swap when it is new
	hasFirewall bool // firewalld is on by default
	hasSELinux  bool
	// hasContainerd marks one that comes with containerd, whose configuration is right when it is "".
	hasContainerd bool
	docker        string            // path below download.docker.com/linux, "" when there are no packages for it
	codenames     map[string]string // of releases, for apt
	// has are binaries that are there already.
	has []string
}

var systems = map[string]system{
	"debian": {
		way: wayAPT, ways: []string{wayAPT, waySysext, wayBinary, wayNone}, hasSwap: true, docker: "debian",
		codenames: map[string]string{"11": "bullseye", "12": "bookworm", "13": "trixie"},
	},
	"ubuntu": {
		way: wayAPT, ways: []string{wayAPT, waySysext, wayBinary, wayNone}, hasSwap: true, docker: "ubuntu",
		codenames: map[string]string{"20.04": "focal", "22.04": "jammy", "24.04": "noble", "26.04": "resolute"},
		has:       []string{"snap"},
	},
	"rocky":     enterpriseLinux,
	"almalinux": enterpriseLinux,
	"centos":    enterpriseLinux,
	"rhel":      enterpriseLinux,
	"fedora": {
		way: wayRPM, ways: []string{wayRPM, waySysext, wayImage, wayBinary, wayNone}, hasSwap: true, hasFirewall: true, hasSELinux: true,
	},
	"fedora-coreos": {
		way: wayOSTree, ways: []string{wayOSTree, waySysext, wayImage, wayBinary, wayNone}, hasContainerd: true, hasSELinux: true,
	},
	"flatcar": {
		way: waySysext, ways: []string{waySysext, wayBinary, wayNone}, hasContainerd: true,
		has: []string{"conntrack", "containerd", "socat"},
	},
	"leap-micro": {way: wayNone, ways: []string{waySysext, wayBinary, wayNone}},
	"talos":      {way: wayNone, isClosed: true},
}

var enterpriseLinux = system{
	way: wayRPM, ways: []string{wayRPM, waySysext, wayImage, wayBinary, wayNone}, hasSwap: true, hasFirewall: true, hasSELinux: true,
	docker: "centos",
}

// Where things come from, unless options say otherwise. {minor} is 1.35, {version} 1.35.0, {arch} the extension's word.
const (
	kubernetesAPT    = "https://pkgs.k8s.io/core:/stable:/v{minor}/deb/"
	kubernetesAPTKey = "Release.key" // below it
	kubernetesRPM    = "https://pkgs.k8s.io/core:/stable:/v{minor}/rpm/"
	kubernetesRPMKey = "repodata/repomd.xml.key"
	dockerBase       = "https://download.docker.com/linux/"
	flatcarSysext    = "https://extensions.flatcar.org/extensions/kubernetes-v{version}-{arch}.raw"
)

// firstWithContainerd2 is the minor version whose kubelet asks for containerd 2, which Debian 13 and Ubuntu 24.04 do not
// have: 1.35 is the last to support 1.7.
const firstWithContainerd2 = 36

// pkg is a package that has a binary.
type pkg struct {
	apt, rpm string
	isOurs   bool // of the Kubernetes repository, with its version
}

var packages = map[string]pkg{
	"conntrack":  {apt: "conntrack", rpm: "conntrack-tools"},
	"containerd": {apt: "containerd", rpm: "containerd"},
	"crictl":     {apt: "cri-tools", rpm: "cri-tools"},
	"kubeadm":    {apt: "kubeadm", rpm: "kubeadm", isOurs: true},
	"kubectl":    {apt: "kubectl", rpm: "kubectl", isOurs: true},
	"kubelet":    {apt: "kubelet", rpm: "kubelet", isOurs: true},
	"snap":       {apt: "snapd", rpm: "snapd"},
	"socat":      {apt: "socat", rpm: "socat"},
}
