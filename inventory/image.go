package inventory

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Digest names content: "sha256:" and 64 hex digits.
type Digest string

var digestRE = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ParseDigest reads sha256:<hex> or the bare 64 hex digits.
func ParseDigest(s string) (Digest, error) {
	s = strings.ToLower(s)
	if !strings.HasPrefix(s, "sha256:") {
		s = "sha256:" + s
	}
	if !digestRE.MatchString(s) {
		return "", Errorf(Invalid, "%q is not a sha256 digest", s).WithHint("64 hex digits, with or without sha256: in front")
	}
	return Digest(s), nil
}

// Hex returns the 64 digits.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), "sha256:") }

// Artefact is a file by its content, kept in the artefact folder of the data directory.
type Artefact struct {
	Digest    Digest    `json:"digest"`
	SizeBytes int64     `json:"sizeBytes"`
	Source    string    `json:"source"` // URL or path it was imported from
	CreatedAt time.Time `json:"createdAt"`
}

// Role says what an artefact does in a boot.
type Role string

// The roles of an artefact in an image.
const (
	RoleKernel Role = "kernel"
	RoleInitrd Role = "initrd" // may repeat; handed over in order
	RoleRootfs Role = "rootfs" // fetched by the booted system itself
	RoleISO    Role = "iso"    // fetched by the booted system itself
	RoleDisk   Role = "disk"   // written to a disk by our agent
)

// Image is a named, versioned set of artefacts and how to boot them.
type Image struct {
	Name    string          `json:"name"`
	OS      string          `json:"os"`      // entry of the OS catalogue, such as debian; "custom" for none
	Release string          `json:"release"` // the OS's own version, such as 12
	Arch    Arch            `json:"arch"`
	Files   []ImageArtefact `json:"files"`
	// KernelArgs are the arguments this image always needs; ${name} is replaced when a script is written.
	KernelArgs []string `json:"kernelArgs,omitempty"`
	// Configs are the formats of configuration that this image reads, the preferred one first.
	Configs []ImageConfig `json:"configs,omitempty"`
	// ConfigArgs are added to KernelArgs when a configuration is rendered; ${config} is its URL.
	ConfigArgs []string `json:"configArgs,omitempty"`
	// DiskFormat is how the file of RoleDisk, or what Remote names, is packed: see DiskFormats.
	DiskFormat string `json:"diskFormat,omitempty"`
	// DiskBytes is how large the unpacked disk image is; 0 when not known.
	DiskBytes int64 `json:"diskBytes,omitempty"`
	// Remote is a disk image that agents fetch themselves: oci://registry/repository@sha256:<hex>. It stands for a file of
	// RoleDisk.
	Remote string `json:"remote,omitempty"`
	// SeedLabel is the label of the file system that configurations are placed in; "" lets the agent find it.
	SeedLabel string `json:"seedLabel,omitempty"`
	// MemoryMiB is the least memory with which it boots.
	MemoryMiB int `json:"memoryMiB,omitempty"`
	// CPULevel is the least level of an x86-64 processor on which it runs, such as x86-64-v3; "" is any.
	CPULevel string `json:"cpuLevel,omitempty"`
	// IsInstaller marks an image whose boot may overwrite a disk: it runs only on a host that is armed.
	IsInstaller bool      `json:"isInstaller"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
	Version     int64     `json:"version"`
}

// ImageConfig is a format of configuration that an image reads, by which version of its tool.
type ImageConfig struct {
	Format  string `json:"format"`  // ignition, cloud-init, autoinstall, kickstart, preseed or talos
	Version string `json:"version"` // newest Ignition spec, cloud-init version, or release of the tool that reads it
	// InitrdPath is where the tool finds its configuration in the initrd, "" when it has to fetch it.
	InitrdPath string `json:"initrdPath,omitempty"`
}

// ImageArtefact is one file of an image; Name is what the boot loader and the arguments call it.
type ImageArtefact struct {
	Role   Role   `json:"role"`
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

var fileRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)

// Validate checks an image by itself.
func (i *Image) Validate() error {
	if err := checkField("name", "image", i.Name); err != nil {
		return err
	}
	kernels, disks, names := 0, 0, map[string]bool{}
	for _, f := range i.Files {
		if !fileRE.MatchString(f.Name) {
			return Errorf(Invalid, "image %s: %q is not a file name", i.Name, f.Name).WithHint("letters, digits, '.', '_', '+' and '-'")
		}
		if names[f.Name] {
			return Errorf(Invalid, "image %s names %s twice", i.Name, f.Name)
		}
		names[f.Name] = true
		if !digestRE.MatchString(string(f.Digest)) {
			return Errorf(Invalid, "image %s: %s has no sha256 digest", i.Name, f.Name)
		}
		if !slices.Contains([]Role{RoleKernel, RoleInitrd, RoleRootfs, RoleISO, RoleDisk}, f.Role) {
			return Errorf(Invalid, "image %s: %q is not a role", i.Name, f.Role).WithHint("use kernel, initrd, rootfs, iso or disk")
		}
		switch f.Role {
		case RoleKernel:
			kernels++
		case RoleDisk:
			disks++
		}
	}
	if i.CPULevel != "" && !slices.Contains(CPULevels(), i.CPULevel) {
		return Errorf(Invalid, "image %s: %q is not a level of processors", i.Name, i.CPULevel).At("cpuLevel").WithHint("use x86-64-v2, x86-64-v3 or x86-64-v4")
	}
	if err := i.validateDisk(kernels, disks); err != nil {
		return err
	}
	if !slices.Contains([]Arch{X8664, I386, ARM64}, i.Arch) {
		return Errorf(Invalid, "image %s: %q is not an architecture", i.Name, i.Arch).WithHint("use x86_64, i386 or arm64")
	}
	if len(i.Configs) > 16 {
		return Errorf(Invalid, "image %s names %d formats of configuration; at most 16 are allowed", i.Name, len(i.Configs))
	}
	for _, c := range i.Configs {
		if err := c.validate(i.Name); err != nil {
			return err
		}
	}
	if err := checkArgs("image "+i.Name, i.ConfigArgs); err != nil {
		return err
	}
	return checkArgs("image "+i.Name, i.KernelArgs)
}

// DiskFormats are the ways in which a disk image may be packed.
func DiskFormats() []string { return []string{"raw", "raw.gz", "raw.zst", "raw.xz", "qcow2"} }

// IsDisk reports whether the image is written to a disk by our agent, instead of being booted from the network.
func (i *Image) IsDisk() bool {
	return i.Remote != "" || slices.ContainsFunc(i.Files, func(f ImageArtefact) bool { return f.Role == RoleDisk })
}

// DiskFile returns the file of RoleDisk.
func (i *Image) DiskFile() (ImageArtefact, bool) {
	for _, f := range i.Files {
		if f.Role == RoleDisk {
			return f, true
		}
	}
	return ImageArtefact{}, false
}

var remoteRE = regexp.MustCompile(`^oci://[A-Za-z0-9][A-Za-z0-9.:_/-]{0,200}@sha256:[0-9a-f]{64}$`)

func (i *Image) validateDisk(kernels, disks int) error {
	isDisk := i.IsDisk()
	switch {
	case !isDisk && kernels != 1:
		return Errorf(Invalid, "image %s has %d kernels; it needs exactly one", i.Name, kernels)
	case !isDisk && i.DiskFormat == "":
		return nil
	case !isDisk:
		return Errorf(Invalid, "image %s has a disk format and no disk image", i.Name)
	case i.Remote != "" && disks > 0 || disks > 1:
		return Errorf(Invalid, "image %s has more than one disk image", i.Name)
	case kernels > 0:
		return Errorf(Invalid, "image %s has a kernel and a disk image: it is either booted or written", i.Name)
	case i.Remote != "" && !remoteRE.MatchString(i.Remote):
		return Errorf(Invalid, "image %s: %q is not a disk image by digest", i.Name, Clean(i.Remote, 120)).
			WithHint("write oci://registry/repository@sha256:<hex>")
	case !slices.Contains(DiskFormats(), i.DiskFormat):
		return Errorf(Invalid, "image %s: %q is not a format of disk images", i.Name, Clean(i.DiskFormat, 40)).WithHint("use one of %v", DiskFormats())
	case i.DiskBytes < 0:
		return Errorf(Invalid, "image %s: its size is negative", i.Name)
	case len(i.KernelArgs) > 0 || len(i.ConfigArgs) > 0:
		return Errorf(Invalid, "image %s is written to a disk: its own boot loader has its kernel arguments", i.Name)
	}
	return CheckText("image "+i.Name+": seedLabel", i.SeedLabel, 36)
}

// AgentOS is the entry of the OS catalogue that our RAM-disk agent is imported as.
const AgentOS = "slipway-agent"

// AgentImage is the name of the image with our RAM-disk agent for an architecture; an unknown one is taken as x86_64.
func AgentImage(a Arch) string {
	if a == ARM64 {
		return "agent-arm64"
	}
	return "agent-x86-64"
}

// ConfigFormats are the formats of configuration that an image may read.
func ConfigFormats() []string {
	return []string{"ignition", "cloud-init", "autoinstall", "kickstart", "preseed", "talos", "combustion"}
}

func (c *ImageConfig) validate(image string) error {
	if !slices.Contains(ConfigFormats(), c.Format) {
		return Errorf(Invalid, "image %s: %q is not a format of configuration", image, Clean(c.Format, 40)).
			WithHint("use one of %s", strings.Join(ConfigFormats(), ", "))
	}
	if !versionRE.MatchString(c.Version) {
		return Errorf(Invalid, "image %s: %s has no version of the tool that reads it", image, c.Format).
			WithHint("give the newest Ignition spec, the cloud-init version, or the installer's release")
	}
	if c.InitrdPath != "" && (!strings.HasPrefix(c.InitrdPath, "/") || path.Clean(c.InitrdPath) != strings.TrimSuffix(c.InitrdPath, "/")) {
		return Errorf(Invalid, "image %s: %q is not an absolute path", image, Clean(c.InitrdPath, 80))
	}
	return nil
}

var versionRE = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~-]{0,31}$`)

// Profile says what a host should boot: an image, with arguments and parameters, for the hosts its selector matches.
type Profile struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	// Selector matches hosts, such as "rack=r1,product=~R6.*"; empty matches none, so that a profile is pinned by name.
	Selector string `json:"selector,omitempty"`
	// Priority decides between profiles that match the same host: the highest wins, two equal ones are an error.
	Priority   int               `json:"priority"`
	KernelArgs []string          `json:"kernelArgs,omitempty"` // after the image's own
	Parameters map[string]string `json:"parameters,omitempty"` // values for ${name} in arguments

	// Extends names a profile whose configuration this one builds upon; "" for none.
	Extends string `json:"extends,omitempty"`
	// Config is the profile's layer of configuration, in YAML; package machineconfig reads it.
	Config string `json:"config,omitempty"`
	// Document is a configuration in a tool's own words, which Config is added to; nil for none.
	Document *Document `json:"document,omitempty"`
	// Format chooses one of the image's formats; "" takes its first.
	Format string `json:"format,omitempty"`
	// Accepts lists paths into the configuration whose loss in the image's format is accepted, such as /storage/lvm.
	Accepts []string `json:"accepts,omitempty"`
	// Isolated opts out of the rules that guard secrets on the boot network, for labs: level L0 of docs/secrets.md.
	Isolated bool `json:"isolated,omitempty"`
	Revision int  `json:"revision"` // counts its changes of content from 1
	Saved

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

var parameterRE = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]{0,63}$`)

// Validate checks a profile by itself.
func (p *Profile) Validate() error {
	if err := checkField("name", "profile", p.Name); err != nil {
		return err
	}
	if p.Image == "" {
		return Errorf(Invalid, "profile %s names no image", p.Name).WithHint("list them with: slipway image list")
	}
	if _, err := ParseSelector(p.Selector); err != nil {
		return err
	}
	if p.Extends == p.Name {
		return Errorf(Invalid, "profile %s extends itself", p.Name)
	}
	if err := checkConfigText("profile "+p.Name, p.Config); err != nil {
		return err
	}
	if p.Document != nil {
		if err := p.Document.validate("profile " + p.Name); err != nil {
			return err
		}
	}
	for k, v := range p.Parameters {
		if !parameterRE.MatchString(k) {
			return Errorf(Invalid, "profile %s: %q is not a parameter name", p.Name, k).WithHint("a letter, then letters, digits and _")
		}
		if err := checkArgs("profile "+p.Name, []string{v}); err != nil {
			return err
		}
	}
	return checkArgs("profile "+p.Name, p.KernelArgs)
}

// checkArgs refuses what would break out of one line of a boot script; package pxe quotes the rest.
func checkArgs(where string, args []string) error {
	total := 0
	for _, a := range args {
		total += len(a) + 1
		if strings.ContainsFunc(a, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return Errorf(Invalid, "%s: argument %q has a control character", where, a)
		}
	}
	if total > 1800 {
		return Errorf(Invalid, "%s: its arguments are %d bytes long", where, total).
			WithHint("kernels read about 2,000 bytes, and Slipway adds some of its own; keep under 1,800")
	}
	return nil
}
