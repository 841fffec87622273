package inventory

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxConfigBytes is the most text that a layer or a document may hold.
const MaxConfigBytes = 1 << 20

// Scope says which hosts a layer of configuration is for. Later scopes override earlier ones, and a profile stands
// between rack and host.
type Scope string

// The scopes of layers, from the widest to the narrowest.
const (
	ScopeGlobal Scope = "global" // all hosts; its name is ""
	ScopeSite   Scope = "site"   // hosts whose place is in that site
	ScopeRack   Scope = "rack"   // hosts whose place is in that rack
	ScopeHost   Scope = "host"   // one host, by its id
)

// Scopes returns all scopes, the widest first.
func Scopes() []Scope { return []Scope{ScopeGlobal, ScopeSite, ScopeRack, ScopeHost} }

// Layer is configuration shared by the hosts of a scope, written as package machineconfig reads it. The layer of a host
// goes with its host.
type Layer struct {
	Scope    Scope  `json:"scope"`
	Name     string `json:"name,omitempty"` // site, rack, or host id; "" for global
	Config   string `json:"config"`         // YAML
	Revision int    `json:"revision"`       // counts its changes of text from 1
	Saved
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// Saved says who saved a thing last that may name secrets. Only the server fills it in.
type Saved struct {
	SavedBy string `json:"savedBy,omitempty" readOnly:"true" doc:"Who saved it last"`
	// SavedByAdmin says that this was an admin everywhere: what it names counts as an admin's word.
	SavedByAdmin bool `json:"savedByAdmin,omitempty" readOnly:"true" doc:"Its last author was admin everywhere, so that it may name secrets without consumers"`
}

// Key names a layer in one word: global, site/<name>, rack/<name> or host/<id>.
func (l *Layer) Key() string { return LayerKey(l.Scope, l.Name) }

// LayerKey is the Key of the layer with that scope and name.
func LayerKey(s Scope, name string) string {
	if s == ScopeGlobal {
		return string(ScopeGlobal)
	}
	return string(s) + "/" + name
}

// ParseLayerKey reads what Key wrote.
func ParseLayerKey(key string) (Scope, string, error) {
	scope, name, _ := strings.Cut(key, "/")
	l := Layer{Scope: Scope(scope), Name: name}
	return l.Scope, l.Name, l.Validate()
}

// Validate checks a layer by itself. Package machineconfig checks its text.
func (l *Layer) Validate() error {
	if !slices.Contains(Scopes(), l.Scope) {
		return Errorf(Invalid, "%q is not a scope of a layer", Clean(string(l.Scope), 40)).WithHint("use global, site/NAME, rack/NAME or host/NAME")
	}
	if (l.Scope == ScopeGlobal) != (l.Name == "") {
		return Errorf(Invalid, "layer %s: a site, rack or host is named, global is not", l.Scope).WithHint("use global, site/NAME, rack/NAME or host/NAME")
	}
	if err := CheckText("layer "+string(l.Scope), l.Name, 255); err != nil {
		return err
	}
	return checkConfigText("layer "+l.Key(), l.Config)
}

// Document is a whole configuration in the words of one tool, for profiles that need what the neutral model lacks.
type Document struct {
	Format DocumentFormat `json:"format"`
	Text   string         `json:"text"` // a Go template, see package machineconfig
	// Files are the local files that a Butane document names, by those names. They become part of Text when it is saved.
	Files map[string][]byte `json:"files,omitempty" writeOnly:"true" doc:"Local files that a Butane document names, by these names; they become part of its text"`
}

// DocumentFormat says which tool's words a document is in.
type DocumentFormat string

// The formats of documents.
const (
	DocButane      DocumentFormat = "butane"
	DocIgnition    DocumentFormat = "ignition"
	DocCloudConfig DocumentFormat = "cloud-config"
	DocAutoinstall DocumentFormat = "autoinstall"
	DocKickstart   DocumentFormat = "kickstart"
	DocPreseed     DocumentFormat = "preseed"
	DocTalos       DocumentFormat = "talos"
)

// DocumentFormats returns all formats of documents.
func DocumentFormats() []DocumentFormat {
	return []DocumentFormat{DocButane, DocIgnition, DocCloudConfig, DocAutoinstall, DocKickstart, DocPreseed, DocTalos}
}

func (d *Document) validate(where string) error {
	if !slices.Contains(DocumentFormats(), d.Format) {
		return Errorf(Invalid, "%s: %q is not a format of a document", where, Clean(string(d.Format), 40)).WithHint("use one of %v", DocumentFormats())
	}
	return checkConfigText(where+", document", d.Text)
}

// checkConfigText refuses text that no parser should be shown.
func checkConfigText(where, text string) error {
	switch {
	case len(text) > MaxConfigBytes:
		return Errorf(Invalid, "%s has %d bytes of text; at most %d are allowed", where, len(text), MaxConfigBytes).
			WithHint("let the machine fetch large files: give them as remote with a checksum")
	case !utf8.ValidString(text):
		return Errorf(Invalid, "%s is not UTF-8 text", where)
	case strings.ContainsRune(text, 0):
		return Errorf(Invalid, "%s holds a NUL character", where)
	}
	return nil
}

// RevisionKind says what a revision is of.
type RevisionKind string

// What has revisions.
const (
	RevisionOfProfile RevisionKind = "profile"
	RevisionOfLayer   RevisionKind = "layer"
)

// Revision is what a profile or layer was at one time. It never changes and outlives what it is of; the store adds one
// with every change of content.
type Revision struct {
	Kind      RevisionKind    `json:"kind"`
	Name      string          `json:"name"` // of the profile, or key of the layer
	N         int             `json:"n"`    // from 1
	Body      json.RawMessage `json:"body"` // the Profile or Layer as it was
	CreatedAt time.Time       `json:"createdAt"`
}

// Rendering is what a host was given to become, as it was validated: late secrets are placeholders in it. Its key is its
// digest, so that a boot session can name it permanently.
type Rendering struct {
	Digest    Digest             `json:"digest"` // over Documents and KernelArgs
	HostID    HostID             `json:"hostID"`
	Profile   string             `json:"profile"`
	Revision  int                `json:"revision"` // of the profile
	Image     string             `json:"image"`
	Format    string             `json:"format"` // of the provisioner: ignition, cloud-init, ...
	Documents []RenderedDocument `json:"documents"`
	// Args are what the configuration adds to the kernel's arguments.
	Args []string `json:"args,omitempty"`
	// Uses say which part of the configuration names each secret and join target: it is asked again when they are delivered.
	Uses      []Use     `json:"uses,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}

// RenderedDocument is one file of a rendering.
type RenderedDocument struct {
	Name        string `json:"name"` // last part of its URL: config.ign, user-data, ks.cfg, ...
	ContentType string `json:"contentType"`
	Text        string `json:"text"`
	// Path is where it is in the initrd, "" for one that is fetched.
	Path string `json:"path,omitempty"`
	// IsSecret marks one that holds placeholders of secrets: it is delivered once.
	IsSecret bool `json:"isSecret,omitempty"`
}

// Delivery counts how often a session has fetched a secret document, and from where.
type Delivery struct {
	SessionID SessionID  `json:"sessionID"`
	Document  string     `json:"document"`
	Source    netip.Addr `json:"source"` // of the first fetch
	FetchN    int        `json:"fetchN"`
	FirstAt   time.Time  `json:"firstAt"`
	LastAt    time.Time  `json:"lastAt"`
	IsBurnt   bool       `json:"isBurnt"` // somebody else asked for it: it is given out no more
}

// Secret is a value that profiles and join targets refer to as secret://name. Only its sealed form is stored; package
// secret has the key.
type Secret struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"` // what it is for, in the admin's words
	Owner string `json:"owner,omitempty"` // object of an attached cluster that it is kept for; "" when a person made it
	// Consumers are those that it is for.
	Consumers Consumers `json:"consumers,omitzero"`
	Sealed    []byte    `json:"-"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// Validate checks a secret by itself.
func (s *Secret) Validate() error {
	if err := checkField("name", "secret", s.Name); err != nil {
		return err
	}
	if err := CheckText("secret "+s.Name+": owner", s.Owner, 1024); err != nil {
		return err
	}
	if err := s.Consumers.validate("secret " + s.Name); err != nil {
		return err
	}
	return CheckText("secret "+s.Name+": about", s.About, 255)
}

// JoinTarget is a Kubernetes cluster that hosts may join.
type JoinTarget struct {
	Name       string `json:"name"`
	Endpoint   string `json:"endpoint"`   // host:port of the API server, as nodes reach it
	Kubernetes string `json:"kubernetes"` // version, such as 1.35.0
	CA         string `json:"ca,omitempty"`
	// Kubeconfig names the secret that holds an administrator's kubeconfig: Slipway mints a token per host with it and
	// approves that host's certificate.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Token names the secret that holds a bootstrap token made elsewhere, for targets without Kubeconfig.
	Token string `json:"token,omitempty"`
	// PKI names the secret that holds the cluster's certificate authorities, for control planes and init; see package
	// machineconfig/kubeadm.
	PKI string `json:"pki,omitempty"`
	// CertificateKey names the secret that decrypts kubeadm-certs, for control planes without PKI.
	CertificateKey string `json:"certificateKey,omitempty"`
	// TokenFor is how long a minted token lives; 30m when 0.
	TokenFor Duration `json:"tokenFor,omitempty"`
	// VIP is the address of Endpoint that control planes share, announced by a static pod on them; from the range of a
	// subnet. VIPInterface is the network interface that carries it.
	VIP          netip.Addr `json:"vip,omitzero"`
	VIPInterface string     `json:"vipInterface,omitempty"`
	VIPImage     string     `json:"vipImage,omitempty"` // container image of the pod
	PodCIDR      string     `json:"podCIDR,omitempty"`
	ServiceCIDR  string     `json:"serviceCIDR,omitempty"`
	// WorkerParallelism is how many workers may join at a time; 20 when 0.
	WorkerParallelism int `json:"workerParallelism,omitempty"`
	// IsInit lets the first control plane make the cluster: its authorities and an administrator's kubeconfig are made
	// with the target. InitializedAt is when that cluster answered first; zero before.
	IsInit        bool      `json:"isInit,omitempty"`
	InitializedAt time.Time `json:"initializedAt,omitzero"`
	// Consumers are those whose machines may join it.
	Consumers Consumers `json:"consumers,omitzero"`
	// Owner is the object of an attached cluster that it is kept for; "" when a person made it.
	Owner     string    `json:"owner,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

var (
	kubernetesRE = regexp.MustCompile(`^\d{1,3}\.\d{1,3}\.\d{1,3}([-+][A-Za-z0-9.+-]{1,40})?$`)
	interfaceRE  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,15}$`)
)

// Validate checks a join target by itself.
func (t *JoinTarget) Validate() error {
	if err := checkField("name", "target", t.Name); err != nil {
		return err
	}
	where := "target " + t.Name
	host, port, err := net.SplitHostPort(t.Endpoint)
	if n, errPort := strconv.ParseUint(port, 10, 16); err != nil || errPort != nil || n == 0 || host == "" || strings.ContainsAny(host, "/@ ") {
		return Errorf(Invalid, "%s: %q is not an endpoint", where, Clean(t.Endpoint, 80)).WithHint("write host:port, such as 10.0.0.9:6443")
	}
	if t.Kubernetes != "" && !kubernetesRE.MatchString(t.Kubernetes) {
		return Errorf(Invalid, "%s: %q is not a version of Kubernetes", where, Clean(t.Kubernetes, 40)).WithHint("write it as 1.35.0, without v")
	}
	if err := checkCA(where, t.CA); err != nil {
		return err
	}
	for _, name := range []string{t.Kubeconfig, t.Token, t.PKI, t.CertificateKey} {
		if name == "" {
			continue
		}
		if err := CheckName("secret", name); err != nil {
			return err
		}
	}
	if d := time.Duration(t.TokenFor); d != 0 && (d < time.Minute || d > 24*time.Hour) {
		return Errorf(Invalid, "%s: a token that lives %s is of no use", where, t.TokenFor).WithHint("choose between 1m and 24h; 30m is usual")
	}
	if t.IsInit && (t.PKI == "" || t.Kubeconfig == "") {
		return Errorf(Invalid, "%s: a cluster that is still to be made needs names for its authorities (pki) and its kubeconfig", where).
			WithHint("apply a JoinTarget with init: true, which names them: slipway apply -f FILE")
	}
	if t.WorkerParallelism < 0 || t.WorkerParallelism > 10_000 {
		return Errorf(Invalid, "%s: %d workers at a time", where, t.WorkerParallelism).WithHint("use 1 to 10000; 0 is 20")
	}
	if err := CheckText(where+": owner", t.Owner, 1024); err != nil {
		return err
	}
	if err := t.Consumers.validate(where); err != nil {
		return err
	}
	if len(t.Consumers.Targets) > 0 {
		return Errorf(Invalid, "%s: a join target is for pools and profiles, not for another target", where)
	}
	if t.VIPInterface != "" && !interfaceRE.MatchString(t.VIPInterface) {
		return Errorf(Invalid, "%s: %q is not a network interface", where, Clean(t.VIPInterface, 40))
	}
	if err := CheckText(where+": vipImage", t.VIPImage, 255); err != nil {
		return err
	}
	for _, cidrs := range []string{t.PodCIDR, t.ServiceCIDR} {
		if cidrs == "" {
			continue
		}
		for _, c := range strings.Split(cidrs, ",") {
			if _, err := netip.ParsePrefix(c); err != nil {
				return Errorf(Invalid, "%s: %q is not a network", where, Clean(c, 60)).WithHint("write it as 10.244.0.0/16; two are separated by a comma")
			}
		}
	}
	return nil
}

// checkCA accepts certificates in PEM, and nothing else that might be a key.
func checkCA(where, text string) error {
	rest := []byte(strings.TrimSpace(text))
	for len(rest) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return Errorf(Invalid, "%s: its CA is not a list of certificates in PEM", where).
				WithHint("give the cluster's ca.crt; keys belong into a secret")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return Errorf(Invalid, "%s: its CA holds a certificate that cannot be read", where).WithHint("give the cluster's ca.crt")
		}
		rest = bytes.TrimSpace(rest)
	}
	return nil
}

// JoinToken is a bootstrap token that was minted for one host, one node name and one boot. Its secret half is sealed.
type JoinToken struct {
	ID        string         `json:"id"` // the public half: six letters and digits
	Target    string         `json:"target"`
	HostID    HostID         `json:"hostID"`
	SessionID SessionID      `json:"sessionID"`
	NodeName  string         `json:"nodeName"`
	Sealed    []byte         `json:"-"`
	State     JoinTokenState `json:"state"`
	CSR       string         `json:"csr,omitempty"` // UID of the certificate request it was spent for
	CreatedAt time.Time      `json:"createdAt"`
	ExpiresAt time.Time      `json:"expiresAt"`
}

// JoinTokenState is how far a token has got.
type JoinTokenState string

// The states of a join token.
const (
	TokenMinted  JoinTokenState = "minted"
	TokenSpent   JoinTokenState = "spent"   // a certificate request was approved for it
	TokenJoined  JoinTokenState = "joined"  // its node has appeared; it is deleted in the cluster
	TokenRevoked JoinTokenState = "revoked" // expired, burnt, or its host was released; deleted in the cluster
)

// Lock is held by one host at a time, such as the right to be the first control plane of a join target.
type Lock struct {
	Name      string    `json:"name"` // such as init/prod
	HostID    HostID    `json:"hostID"`
	SessionID SessionID `json:"sessionID"`
	SinceAt   time.Time `json:"sinceAt"`
}

// SiteKey is a key that all instances of a database must have the same of. Package keys of slipway serve has the names.
type SiteKey struct {
	Name    string
	Public  string // certificates in PEM, or a fingerprint
	Sealed  []byte // the private key; empty for a fingerprint
	SinceAt time.Time
}
