// Package arch holds the shape of the house as tests: which floor a package lives on, which third-party library has
// which one owner, and how long a file may grow. It never looks at behaviour.
package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "slipway.dev/slipway"

// floors says where each package lives; imports go down only. The longest matching prefix counts.
var floors = map[string]int{
	"inventory": 0, "inventory/ref": 0, "inventory/ref/pooled": 1, "inventory/noun": 0, "inventory/sleep": 0, "migrations": 0, "agent/wire": 0, "inventory/egress": 0, "inventory/option": 0, "machineconfig/quoting": 0,
	"pxe": 1, "pxe/admission": 1, "pxe/lease": 1, "pxe/trace": 1, "pxe/diagnosis": 1, "pxe/lease6": 1, "pxe/dhcpoption": 1, "pxe/sigdb": 1, "inventory/transfer": 1, "inventory/elevation": 1, "inventory/usage": 1, "inventory/auditchain": 1, "inventory/secret": 1,
	"machineconfig/docschema": 1, "machineconfig": 1, "machineconfig/kubeadm": 1, "machineconfig/k3s": 1, "machineconfig/microk8s": 1, "machineconfig/talos": 1,
	"machineconfig/capisecret": 1, "machineconfig/osadapter": 1, "machineconfig/none": 1, "machineconfig/plain": 1, "machineconfig/kubeadm/kubelet": 1, "installer": 1,
	"ignition": 1, "cloudinit": 1, "installer/autoinstall": 1, "installer/kickstart": 1, "installer/preseed": 1, "machineconfig/render": 1,
	"hardware": 1, "hardware/identity": 1, "hardware/placement": 1, "hardware/rootdisk": 1, "hardware/acceptance": 1, "provision/proof": 1, "bmc": 1, "provision/foresight": 1,
	"machineconfig/reference": 1, "machineconfig/address": 1, "machineconfig/late": 0, "machineconfig/pointer": 0, "machineconfig/layer": 1,
	"machineconfig/template": 1, "machineconfig/validation": 1,
	"inventory/sqlstore": 2, "inventory/sqlstore/column": 1, "inventory/sqlstore/hint": 1, "inventory/ahead": 1, "inventory/sqlstore/sqlite": 2, "inventory/sqlstore/database": 2, "inventory/sqlstore/copying": 1, "inventory/sqlstore/moving": 2, "inventory/sqlstore/postgres": 2,
	"agent": 2, "agent/host": 2, "agent/inspect": 2, "agent/burn": 2, "agent/disk": 2, "agent/wipe": 2, "agent/write": 2, "agent/efi": 2, "agent/seed": 2, "agent/kexec": 2, "agent/disk/fat": 2, "agent/write/fetch": 2, "agent/write/qcow2": 1,
	"images/ramdisk": 3, "images/agentimage": 3, "pxe/ear": 3, "pxe/door": 3, "pxe/metric": 3, "inventory/logbook": 4, "provision/allowance": 1,
	"provision": 3, "provision/session": 3, "provision/recorder": 3, "bmc/trial": 3, "images": 3, "images/authenticode": 3, "inventory/live": 3, "web/proxy": 3, "web/weak": 1, "web/scoped": 3, "web/totp": 3, "web/securitykey": 3, "web/wire": 3,
	"provision/ledger": 3, "provision/configuration": 3, "provision/watch": 3, "provision/delivery": 3, "provision/power": 3, "provision/strangers": 3, "provision/operation": 3, "provision/claim": 3,
	"images/copies": 3, "provision/boot": 3, "provision/hosts": 3, "provision/duty": 3,
	"kubernetes/v1alpha1": 0, "kubernetes/infra/v1alpha1": 0, "kubernetes/contract": 1, "kubernetes/manifests": 1,
	"kubernetes/controllers": 3, "kubernetes/kubeconfig": 3, "kubernetes/translate": 3,
	"kubernetes/apply": 4, "kubernetes/backend": 4, "kubernetes/clusterapi": 4, "kubernetes/convert": 4, "kubernetes/join": 4,
	"kubernetes/manager": 4, "kubernetes/node": 4, "kubernetes/standalone": 4,
	"pxe/dhcp": 4, "pxe/dhcp6": 4, "pxe/ra": 4, "pxe/tap": 4, "pxe/record": 4, "pxe/tftp": 4, "pxe/tftp/fetch": 4, "pxe/httpboot": 4, "web": 4, "web/rest": 4, "web/access": 4, "web/audit": 4, "web/records": 4, "web/network": 4, "web/configs": 4, "web/imports": 4, "web/history": 4, "web/system": 4, "web/instances": 4, "web/files": 4, "web/power": 4, "web/consoles": 4, "web/hosts": 4, "web/machines": 4, "web/events": 4, "web/clusters": 4, "web/client": 4, "ui": 4,
	"cmd/slipway": 5,
	"lab":         5, "lab/database": 2,
	"cmd/slipway-agent": 5,
	"test":              6, "inventory/storetest": 6, "bmc/bmctest": 6, "bmc/redfish/redfishtest": 6, "bmc/ipmi/ipmitest": 6, "machineconfig/layer/layertest": 6, "agent/disk/disktest": 6, "kubernetes/backend/backendtest": 6, "web/securitykey/securitykeytest": 6,
}

// sameFloor lists the imports between neighbours that are allowed, and why.
var sameFloor = map[string]string{
	"images/copies -> images":                                    "a copy is a file of the cache",
	"images -> images/authenticode":                              "an import asks who has signed a kernel",
	"web -> web/rest":                                            "the server wires operations to the frame",
	"web -> web/access":                                          "the server wires who may come in",
	"web -> web/records":                                         "the server wires plain records",
	"web/records -> web/rest":                                    "plain records are operations of the frame",
	"web -> web/network":                                         "the server wires subnets, leases and addresses",
	"web/network -> web/rest":                                    "subnets, leases and addresses are operations of the frame",
	"web -> web/configs":                                         "the server wires profiles, layers, secrets and renderings",
	"web/configs -> web/rest":                                    "profiles, layers, secrets and renderings are operations of the frame",
	"web -> web/imports":                                         "the server wires images and artefacts",
	"web/imports -> web/rest":                                    "images and artefacts are operations of the frame",
	"web -> web/history":                                         "the server wires sessions, issues, operations and the timeline",
	"web/history -> web/rest":                                    "sessions, issues, operations and the timeline are operations of the frame",
	"web -> web/system":                                          "the server wires the server itself",
	"web/system -> web/rest":                                     "the server itself are operations of the frame",
	"web -> web/instances":                                       "the server wires the instances of the database",
	"web/instances -> web/rest":                                  "the instances of the database are operations of the frame",
	"web -> web/files":                                           "the server wires backup, export and import",
	"web/files -> web/rest":                                      "backup, export and import are operations of the frame",
	"web/power -> web/history":                                   "an operation is answered as the list of operations shows it",
	"web/power -> web/audit":                                     "an edit of a controller is undone",
	"web/hosts -> web/audit":                                     "an edit of a host is undone",
	"web/machines -> web/audit":                                  "an edit of a machine is undone",
	"web/consoles -> web/power":                                  "a console is what a controller can do",
	"web/hosts -> web/power":                                     "a flag of a host is switched as its LED is",
	"web/clusters -> web/power":                                  "controllers in a cluster are shown BMCs without their secrets",
	"web/clusters -> web/records":                                "controllers in a cluster keep pools",
	"web/clusters -> web/configs":                                "a target that a configuration names is not deleted",
	"web/clusters -> web/machines":                               "a hook is acknowledged by the same input",
	"web/clusters -> web/events":                                 "a cluster follows events",
	"web/events -> web/access":                                   "a stream ends when its caller logs out",
	"web -> web/power":                                           "the server wires the controllers of hosts",
	"web/power -> web/rest":                                      "the controllers of hosts are operations of the frame",
	"web -> web/consoles":                                        "the server wires serial consoles",
	"web/consoles -> web/rest":                                   "serial consoles are operations of the frame",
	"web -> web/hosts":                                           "the server wires hosts",
	"web/hosts -> web/rest":                                      "hosts are operations of the frame",
	"web -> web/machines":                                        "the server wires machines",
	"web/machines -> web/rest":                                   "machines are operations of the frame",
	"web -> web/events":                                          "the server wires events",
	"web/events -> web/rest":                                     "events are operations of the frame",
	"web -> web/clusters":                                        "the server wires join targets and clusters",
	"web/clusters -> web/rest":                                   "join targets and clusters are operations of the frame",
	"web -> web/audit":                                           "the server wires who may read the audit, and undo",
	"web/audit -> web/rest":                                      "reads what the frame writes, and undoes through it",
	"web/access -> web/rest":                                     "logins, users and tokens are operations of the frame",
	"pxe/trace -> pxe":                                           "packets are of classified clients",
	"pxe/diagnosis -> pxe":                                       "reads what was decided",
	"pxe/diagnosis -> pxe/lease":                                 "reads why nothing was answered",
	"pxe/diagnosis -> pxe/trace":                                 "reads what was on the wire",
	"pxe/lease -> pxe":                                           "leases are chosen for classified clients",
	"machineconfig/plain -> machineconfig":                       "says parts of the neutral model in files, units and commands",
	"ignition -> machineconfig/plain":                            "what Ignition has no words for",
	"cloudinit -> machineconfig/plain":                           "what cloud-init has no words for",
	"installer/kickstart -> machineconfig/plain":                 "what kickstart has no words for",
	"ignition -> machineconfig":                                  "a provisioner says the neutral model",
	"cloudinit -> machineconfig":                                 "a provisioner says the neutral model",
	"installer/autoinstall -> machineconfig":                     "a provisioner says the neutral model",
	"installer/kickstart -> machineconfig":                       "a provisioner says the neutral model",
	"installer/preseed -> machineconfig":                         "a provisioner says the neutral model",
	"machineconfig/layer -> machineconfig":                       "a layer has the shape of the neutral model",
	"machineconfig/layer -> machineconfig/docschema":             "finds the word that was meant",
	"machineconfig/template -> machineconfig":                    "expands templates in the neutral model",
	"machineconfig/template -> machineconfig/docschema":          "finds the word that was meant",
	"machineconfig/validation -> machineconfig":                  "checks the neutral model",
	"machineconfig/validation -> machineconfig/docschema":        "finds the word that was meant",
	"machineconfig/late -> inventory":                            "a reference has the name of a secret",
	"machineconfig/reference -> machineconfig/layer":             "reads what a layer names",
	"machineconfig/reference -> machineconfig/template":          "reads what a template names",
	"machineconfig/render -> machineconfig/layer":                "merges layers",
	"machineconfig/render -> machineconfig/template":             "expands templates",
	"machineconfig/render -> machineconfig/validation":           "checks what it renders",
	"cloudinit -> machineconfig/docschema":                       "its table of a cloud-config",
	"installer/autoinstall -> machineconfig/docschema":           "its table of an autoinstall document",
	"installer/kickstart -> machineconfig/docschema":             "finds the word that was meant",
	"installer/autoinstall -> cloudinit":                         "what it installs is finished by cloud-init",
	"installer/kickstart -> cloudinit":                           "what it installs may be finished by cloud-init",
	"installer/preseed -> cloudinit":                             "what it installs is finished by cloud-init",
	"machineconfig/kubeadm -> machineconfig":                     "a bootstrapper emits into the neutral model",
	"machineconfig/k3s -> machineconfig":                         "a bootstrapper emits into the neutral model",
	"machineconfig/microk8s -> machineconfig":                    "a bootstrapper emits into the neutral model",
	"machineconfig/talos -> machineconfig":                       "a bootstrapper emits into the neutral model",
	"machineconfig/capisecret -> machineconfig":                  "a bootstrapper emits into the neutral model",
	"machineconfig/kubeadm/kubelet -> machineconfig":             "reads what a node should be",
	"machineconfig/kubeadm -> machineconfig/kubeadm/kubelet":     "all of them start a kubelet",
	"machineconfig/k3s -> machineconfig/kubeadm/kubelet":         "all of them start a kubelet",
	"machineconfig/microk8s -> machineconfig/kubeadm/kubelet":    "all of them start a kubelet",
	"installer -> machineconfig":                                 "what all installers share",
	"installer -> cloudinit":                                     "what installers leave is finished by cloud-init",
	"installer/autoinstall -> installer":                         "what all installers share",
	"installer/kickstart -> installer":                           "what all installers share",
	"installer/preseed -> installer":                             "what all installers share",
	"machineconfig/none -> machineconfig":                        "a bootstrapper emits into the neutral model",
	"machineconfig/capisecret -> ignition":                       "foreign secrets become Ignition",
	"machineconfig/osadapter -> machineconfig":                   "meets what bootstrappers require, in the neutral model",
	"machineconfig/render -> machineconfig":                      "the way from layers to documents",
	"inventory/noun -> inventory":                                "says what plain nouns have in common",
	"inventory -> inventory/ref":                                 "errors, events and issues keep the references of their texts",
	"inventory/sqlstore -> inventory/sqlstore/sqlite":            "statements run in the transactions of the database file",
	"inventory/sqlstore -> inventory/sqlstore/postgres":          "or in those of a PostgreSQL server",
	"inventory/sqlstore -> inventory/sqlstore/database":          "transactions are the same on both",
	"inventory/sqlstore/sqlite -> inventory/sqlstore/database":   "has the connections of the shared commit",
	"inventory/sqlstore/postgres -> inventory/sqlstore/database": "has them, too",
	"inventory/sqlstore -> inventory/sqlstore/moving":            "a backup of PostgreSQL is a copy",
	"inventory/sqlstore/moving -> inventory/sqlstore/sqlite":     "one of the two databases",
	"inventory/sqlstore/moving -> inventory/sqlstore/postgres":   "and the other",
	"inventory -> inventory/option":                              "subnets, classes and reservations have DHCP options",
	"pxe -> pxe/dhcpoption":                                      "a client says what its classes are found by",
	"hardware/placement -> hardware/rootdisk":                    "a host fits when it has a disk for the system",
	"inventory/egress -> inventory":                              "what is wrong with an allow list is an error of ours",
	"agent/wire -> inventory":                                    "what an agent tells is what the inventory knows",
	"machineconfig/address -> machineconfig":                     "finds what configurations give machines",
	"machineconfig/reference -> machineconfig":                   "finds what configurations name",
	"machineconfig/reference -> hardware":                        "a pool is of hosts with certain hardware",
	"hardware/placement -> hardware":                             "hosts are chosen by what they are made of",
	"hardware/acceptance -> hardware":                            "the sheet uses its words",
	"kubernetes/infra/v1alpha1 -> kubernetes/v1alpha1":           "they share placement, operating system and addresses",
	"kubernetes/contract -> bmc":                                 "powers hosts",
	"provision -> provision/session":                             "the boots that run",
	"provision -> provision/recorder":                            "writes behind the packets",
	"provision -> provision/ledger":                              "the facade hands the rooms what they need",
	"provision -> provision/configuration":                       "the facade hands the rooms what they need",
	"provision -> provision/watch":                               "the facade hands the rooms what they need",
	"provision -> provision/power":                               "the facade hands the rooms what they need",
	"provision -> provision/strangers":                           "the facade hands the rooms what they need",
	"provision -> provision/operation":                           "the facade hands the rooms what they need",
	"provision -> provision/claim":                               "the facade hands the rooms what they need",
	"provision -> provision/boot":                                "the facade hands the rooms what they need",
	"provision -> provision/hosts":                               "the facade hands the rooms what they need",
	"provision/boot -> provision/session":                        "the boots that run",
	"provision/boot -> provision/recorder":                       "writes behind the packets",
	"provision/boot -> provision/ledger":                         "writes what happens",
	"provision/boot -> provision/configuration":                  "what a host is given",
	"provision/boot -> provision/delivery":                       "who asks, and for which boot",
	"provision/boot -> provision/strangers":                      "what is stored of a machine",
	"provision/boot -> provision/power":                          "whether a host was restarted",
	"provision/boot -> provision/operation":                      "a boot moves an operation on",
	"provision/hosts -> provision/ledger":                        "writes changes of hosts",
	"provision/hosts -> provision/operation":                     "edits a host in its transaction",
	"provision/claim -> provision/operation":                     "installs and releases hosts",
	"provision/claim -> provision/ledger":                        "writes what happens to machines",
	"provision/claim -> provision/configuration":                 "the addresses that machines hold",
	"provision/claim -> provision/delivery":                      "bootstrap data of machines that go",
	"provision/claim -> provision/session":                       "the boots that run",
	"web/wire -> provision/operation":                            "an inspection is ordered in the same words",
	"provision/operation -> provision/ledger":                    "writes what happens",
	"provision/operation -> provision/power":                     "speaks to controllers",
	"provision/operation -> provision/delivery":                  "who an agent is",
	"provision/operation -> provision/configuration":             "what is written to a host",
	"provision/operation -> provision/watch":                     "why a boot is late",
	"provision/operation -> provision/strangers":                 "what is stored of a machine",
	"provision/operation -> provision/recorder":                  "writes behind the packets",
	"provision/operation -> provision/session":                   "the boots that run",
	"provision/power -> provision/ledger":                        "writes issues",
	"provision/power -> provision/configuration":                 "what opens secrets",
	"provision/strangers -> provision/recorder":                  "decides what is written behind the packets",
	"provision/strangers -> provision/ledger":                    "pauses between transactions",
	"provision/ledger -> provision/recorder":                     "ends boots behind the packets",
	"provision/ledger -> provision/session":                      "the boots that end",
	"provision/configuration -> provision/ledger":                "writes issues and changes of state",
	"provision/watch -> provision/configuration":                 "the port that a host boots from",
	"provision/watch -> provision/ledger":                        "writes issues and changes of state",
	"provision -> provision/delivery":                            "the facade hands the rooms what they need",
	"provision/delivery -> provision/configuration":              "what a machine is given",
	"provision/delivery -> provision/ledger":                     "writes issues",
	"provision/delivery -> provision/recorder":                   "writes behind the packets",
	"provision/delivery -> provision/session":                    "the boots that run",
	"provision/watch -> provision/recorder":                      "writes behind the packets",
	"provision/watch -> provision/session":                       "the boots that run",
	"kubernetes/standalone -> kubernetes/node":                   "nodes of machines that join a target",
	"kubernetes/clusterapi -> kubernetes/node":                   "taints the node of a host that is off",
	"kubernetes/node -> kubernetes/join":                         "says what a failed call to a cluster means",
	"kubernetes/apply -> kubernetes/node":                        "asks how a control plane is",
	"kubernetes/manager -> kubernetes/backend":                   "each cluster's controllers get the appliance as that cluster may use it",
	"kubernetes/backend -> web/client":                           "the appliance is reached through its API",
	"images/agentimage -> images/ramdisk":                        "packs what it has chosen",
	"bmc/scan -> bmc/ipmi":                                       "a scan asks as the driver does",
}

// pure packages give the same bytes for the same input: they may import none of these, nor call time.Now.
var impure = []string{"database/sql", "net/http", "os", "os/exec", "syscall", "math/rand", "math/rand/v2"}

// owners names the only packages that may import a third-party library; a library missing here may not be imported.
var owners = map[string][]string{
	"github.com/alecthomas/kong":             {"cmd/slipway"},
	"github.com/danielgtaylor/huma":          {"web", "web/rest", "web/access", "web/files", "web/imports", "web/records", "web/consoles", "web/hosts", "web/machines", "web/events", "web/clusters"},
	"github.com/labstack/echo":               {"web", "web/rest", "web/consoles"},
	"github.com/coreos/go-oidc":              {"web/access"},
	"golang.org/x/oauth2":                    {"web/access"},
	"github.com/mattn/go-sqlite3":            {"inventory/sqlstore/sqlite"},
	"github.com/pressly/goose":               {"inventory/sqlstore/database", "inventory/sqlstore/sqlite", "inventory/sqlstore/postgres"},
	"github.com/jackc/pgx":                   {"inventory/sqlstore/postgres"},
	"github.com/anishathalye/porcupine":      {"test/history"}, // this and the next two are for tests only
	"github.com/Shopify/toxiproxy":           {"test/line"},
	"github.com/rs/zerolog":                  {"test/line"},
	"github.com/insomniacslk/dhcp":           {"pxe/dhcp", "lab/simulate", "agent"},
	"github.com/pires/go-proxyproto":         {"web/proxy"},
	"github.com/beevik/etree":                {"bmc/libvirt"},
	"github.com/maruel/natural":              {"images"},
	"github.com/pin/tftp":                    {"pxe/tftp", "lab/simulate"},
	"github.com/mdlayher":                    {"pxe/dhcp", "pxe/ra", "lab/simulate"},
	"github.com/vishvananda":                 {"cmd/slipway", "lab", "agent"},
	"github.com/digitalocean/go-libvirt":     {"lab", "bmc/libvirt"},
	"github.com/stmcginnis/gofish":           {"bmc/redfish"},
	"github.com/bougou/go-ipmi":              {"bmc/ipmi"},
	"github.com/google/cel-go":               {"hardware"},
	"github.com/ulikunitz/xz":                {"agent", "images"},
	"github.com/google/go-containerregistry": {"agent"},
	"github.com/oklog/ulid":                  {"cmd/slipway"},
	"github.com/gopacket/gopacket":           {"cmd/slipway/serve"},
	"github.com/google/uuid":                 {"cmd/slipway", "provision"},
	"github.com/go-webauthn/webauthn":        {"web/securitykey"},
	"github.com/google/renameio":             {"images", "cmd/slipway/serve", "cmd/slipway/newcomer"},
	"github.com/ProtonMail/go-crypto":        {"images"},
	"github.com/klauspost/compress":          {"images", "agent"},
	"github.com/prometheus/client_golang":    {"cmd/slipway", "provision", "images", "inventory", "pxe/dhcp", "pxe/dhcp6", "pxe/ra", "pxe/tap", "pxe/tftp", "pxe/httpboot", "pxe/metric", "web"},
	"go.yaml.in/yaml":                        {"machineconfig/docschema", "cmd/slipway", "inventory/transfer", "images", "web", "machineconfig", "cloudinit", "installer/autoinstall", "machineconfig/render", "installer/kickstart", "installer/preseed", "ignition", "kubernetes/convert", "kubernetes/apply", "kubernetes/clusterapi", "kubernetes/translate", "kubernetes/standalone"},
	"github.com/coreos":                      {"ignition"},
	"github.com/pmezard/go-difflib":          {"provision", "cmd/slipway"},
	"rsc.io/qr":                              {"web/hosts"},
	"golang.org/x/crypto":                    {"inventory/secret", "web/access", "images/authenticode"}, // web/access: argon2id of passwords; images/authenticode: cryptobyte
	"github.com/go-logr/logr":                {"kubernetes/manager"},
	"k8s.io":                                 {"kubernetes", "cmd/slipway/cli/kubectl"},
	"sigs.k8s.io":                            {"kubernetes", "cmd/slipway/cli/kubectl"},
	"golang.org/x/net":                       {"pxe/dhcp", "pxe/dhcp6", "pxe/ra", "pxe/tap", "pxe/tftp", "pxe/httpboot", "lab/simulate"},
	"golang.org/x/sync":                      {"cmd/slipway", "lab", "kubernetes/manager", "provision", "images", "inventory", "pxe/dhcp", "pxe/dhcp6", "pxe/ra", "pxe/tap", "pxe/tftp", "pxe/httpboot", "web", "web/hosts"},
	"golang.org/x/sys":                       {"cmd/slipway", "lab", "cmd/slipway-agent", "agent", "bmc/ipmi", "bmc/scan", "bmc/wol", "pxe/dhcp", "pxe/dhcp6", "pxe/ear", "pxe/ra", "pxe/tap", "pxe/tftp", "pxe/httpboot", "images", "provision/duty"},
	"golang.org/x/term":                      {"cmd/slipway", "lab"},
	"golang.org/x/time":                      {"provision", "pxe/dhcp", "pxe/dhcp6", "pxe/ra", "pxe/tap", "pxe/tftp", "pxe/httpboot", "web/access", "web/rest"},
}

type file struct {
	pkg, name string
	imports   []string
	lines     int
	ast       *ast.File
}

// files reads all Go files of the module but those made by tools and tests.
func files(t *testing.T) []file {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		if d.IsDir() {
			if slices.Contains([]string{".git", "tools", "ui", "bin", "build", "testdata", "node_modules"}, d.Name()) && rel != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") || strings.HasPrefix(d.Name(), "zz_generated.") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, text, parser.ParseComments)
		if err != nil {
			return err
		}
		one := file{pkg: path.Dir(filepath.ToSlash(rel)), name: filepath.ToSlash(rel), lines: bytes.Count(text, []byte("\n")), ast: f}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			one.imports = append(one.imports, name)
		}
		all = append(all, one)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d files found; the test looks in the wrong place", len(all))
	}
	return all
}

// floor returns the floor of a package of ours. A folder in bmc without a floor of its own is a driver.
func floor(pkg string) (int, bool) {
	if _, isListed := floors[pkg]; !isListed && path.Dir(pkg) == "bmc" {
		return 2, true
	}
	for p := pkg; p != "."; p = path.Dir(p) {
		if f, ok := floors[p]; ok {
			return f, p == pkg || f >= 5
		}
	}
	return 0, false
}

func TestImportsGoDownTheFloors(t *testing.T) {
	for _, f := range files(t) {
		from, ok := floor(f.pkg)
		if !ok {
			t.Errorf("%s: package %s has no floor; give it one in test/arch", f.name, f.pkg)
			continue
		}
		for _, name := range f.imports {
			pkg, ours := strings.CutPrefix(name, module+"/")
			if !ours {
				continue
			}
			to, _ := floor(pkg)
			switch {
			case from >= 5 && to == from: // binaries and tests may use their neighbours
			case isAgent(f.pkg) && isAgent(pkg): // one program in several rooms
			case to == from && sameFloor[f.pkg+" -> "+pkg] == "" && f.pkg != pkg:
				t.Errorf("%s imports its neighbour %s on floor %d", f.name, pkg, to)
			case to > from:
				t.Errorf("%s (floor %d) imports %s (floor %d): imports go down", f.name, from, pkg, to)
			case to == 2 && (from == 3 || from == 4):
				t.Errorf("%s imports the plug %s; declare an interface and let cmd plug it in", f.name, pkg)
			}
		}
	}
}

// edges are the files that may put a value into a context, or take one out: the HTTP libraries carry a connection and a request
// from one middleware to the next in no other way. Who asks, what for and what is kept of it travel in arguments.
var edges = map[string]string{
	"bmc/omit.go":              "what a driver leaves out of its answers",
	"pxe/door/listen.go":       "the place of a connection among those of its listener",
	"pxe/httpboot/file.go":     "the connection of a request",
	"pxe/httpboot/handler.go":  "the address that a request came to",
	"pxe/httpboot/httpboot.go": "the connection of a request",
	"web/access/peer.go":       "the user at the other end of a Unix socket",
	"web/rest/request.go":      "the request",
}

func TestOnlyEdgesUseTheValuesOfAContext(t *testing.T) {
	used := map[string]bool{}
	for _, f := range files(t) {
		text, err := os.ReadFile(filepath.Join("..", "..", f.name))
		if err != nil {
			t.Fatal(err)
		}
		if !contextValue.Match(text) {
			continue
		}
		used[f.name] = true
		if edges[f.name] == "" {
			t.Errorf("%s uses a value of a context: pass it as an argument", f.name)
		}
	}
	for name := range edges {
		if !used[name] {
			t.Errorf("%s uses no value of a context any more: take it out of edges", name)
		}
	}
}

// contextValue finds a value that is put into a context or taken out of one.
var contextValue = regexp.MustCompile(`context\.WithValue\(|(\b[cC]tx|\breq|\.Context\(\))\.Value\(`)

func isAgent(pkg string) bool { return pkg == "agent" || strings.HasPrefix(pkg, "agent/") }

// The agent is small: it takes nothing of ours but its own rooms and the ground it shares with the server.
func TestTheAgentStaysSmall(t *testing.T) {
	for _, f := range files(t) {
		if !isAgent(f.pkg) && f.pkg != "cmd/slipway-agent" || f.pkg == "agent/wire" {
			continue
		}
		for _, name := range f.imports {
			pkg, ours := strings.CutPrefix(name, module+"/")
			if to, _ := floor(pkg); ours && !isAgent(pkg) && to > 1 {
				t.Errorf("%s imports %s: the agent must stay small", f.name, pkg)
			}
			for _, heavy := range []string{"k8s.io/", "sigs.k8s.io/", "database/sql", "github.com/labstack/", "github.com/mattn/"} {
				if strings.HasPrefix(name, heavy) {
					t.Errorf("%s imports %s: the agent must stay small", f.name, name)
				}
			}
		}
	}
}

func TestGroundAndPureFloorsStayClean(t *testing.T) {
	for _, f := range files(t) {
		level, _ := floor(f.pkg)
		if level > 1 {
			continue
		}
		for _, name := range f.imports {
			if strings.HasSuffix(f.pkg, "/v1alpha1") && strings.HasPrefix(name, "k8s.io/apimachinery/") {
				continue // kinds are made of these; a client must not have to take more
			}
			if level == 0 && strings.Contains(strings.SplitN(name, "/", 2)[0], ".") && !strings.HasPrefix(name, module+"/") {
				t.Errorf("%s imports %s: the ground floor uses the standard library only", f.name, name)
			}
			if level == 1 && slices.Contains(impure, name) {
				t.Errorf("%s imports %s: the pure floor has no files, sockets, programs or chance", f.name, name)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Sleep" || s.Sel.Name == "After") {
					t.Errorf("%s calls time.%s: take the time as an argument", f.name, s.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestEachLibraryHasItsOwner(t *testing.T) {
	for _, f := range files(t) {
		if level, _ := floor(f.pkg); level >= 6 {
			continue
		}
		for _, name := range f.imports {
			if !strings.Contains(strings.SplitN(name, "/", 2)[0], ".") || strings.HasPrefix(name, module) {
				continue
			}
			lib, allowed := owner(name)
			if lib == "" {
				t.Errorf("%s imports %s, which has no owner; see docs/decisions before adding a library", f.name, name)
			} else if !slices.ContainsFunc(allowed, func(p string) bool {
				return f.pkg == p || strings.HasPrefix(f.pkg, p+"/") && p != "inventory" && p != "web"
			}) {
				t.Errorf("%s imports %s, which belongs to %v", f.name, lib, allowed)
			}
		}
	}
}

// owner finds the longest entry of owners that covers an import: a library may
// belong to another package than its siblings of the same publisher.
func owner(name string) (lib string, allowed []string) {
	for path, packages := range owners {
		if (name == path || strings.HasPrefix(name, path+"/")) && len(path) > len(lib) {
			lib, allowed = path, packages
		}
	}
	return lib, allowed
}

func TestOnlyTestsImportTheConformanceSuite(t *testing.T) {
	for _, f := range files(t) {
		if slices.Contains(f.imports, module+"/inventory/storetest") {
			t.Errorf("%s imports inventory/storetest, which brings package testing", f.name)
		}
	}
}

func TestFilesStayShort(t *testing.T) {
	for _, f := range files(t) {
		if f.lines > 500 {
			t.Errorf("%s has %d lines: look for the missing noun", f.name, f.lines)
		}
	}
}

func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	said, seen := map[string]bool{}, map[string]bool{}
	for _, f := range files(t) {
		seen[f.pkg] = true
		if f.ast.Doc != nil {
			said[f.pkg] = true
		}
	}
	for pkg := range seen {
		if !said[pkg] {
			t.Errorf("package %s has no comment that says what it owns and what it never does", pkg)
		}
	}
}
