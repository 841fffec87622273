// Package pxe owns the boot decision: the identity of the caller (Client), what it boots and why (Decide), and the answer
// of DHCP (Answer). It also has the scripts and the one table of boot file names. It is pure: the same input gives the same
// bytes. It never reads a file, a socket or a clock.
package pxe

import (
	"net/netip"
	"net/url"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Stage is the program on the machine that sent the packet or request.
type Stage string

// The stages of a network boot.
const (
	StageOS       Stage = "os"       // no network boot: an operating system, a phone, a BMC
	StageFirmware Stage = "firmware" // PXE or HTTP Boot firmware that wants a loader
	StageIPXE     Stage = "ipxe"     // iPXE that wants a script
	StageGRUB     Stage = "grub"     // GRUB that wants its configuration
	StagePXELinux Stage = "pxelinux" // U-Boot or PXELINUX that wants its pxelinux.cfg
)

// Client is what a packet or a script request tells about a machine. Every text in it comes from the network.
type Client struct {
	Stage    Stage
	MAC      inventory.MAC
	Arch     inventory.Arch // "" when not told
	Firmware inventory.Firmware
	ArchCode ArchCode
	UUID     string // option 97 or iPXE's ${uuid}, lower case
	ClientID string // option 61 in hex
	Class    string // option 60

	UserClass string // option 77; several with ", " between them
	IPXE      IPXE   // what iPXE can do; zero for others

	IsRaspberryPi bool // whatever it says of its architecture

	Address netip.Addr // what it has, or is being given
	Subnet  string     // the subnet it is in
	Server  netip.Addr // our address as that machine reaches it
	HasPort bool       // the packet came the way that shows which switch port it is from, or that nobody says
	Port    string     // switch port that a relay named (option 82); see inventory.PortName
	Relay   netip.Addr // the relay's address; invalid when directly attached
	IsProxy bool       // another DHCP server gives its address

	SecureBoot string // SecureBootOn or SecureBootOff where its boot loader said so; "": not known
	Choice     Choice // what a person chose in the menu

	// Identity is what iPXE reported in a script request; nil in DHCP.
	Identity *Identity
}

// IPXE is what option 175 says of an iPXE build.
type IPXE struct {
	Version  string // such as 1.0.0; from option 175.235
	HasHTTP  bool
	HasHTTPS bool
	IsOld    bool // it has no HTTP, or is gPXE: it is given a loader over TFTP, as firmware is
}

// Identity is what a machine says of itself when it asks for its script. The fields are hints and are cleaned.
type Identity struct {
	UUID, Serial, AssetTag, Manufacturer, Product, BoardSerial string
	Platform, BuildArch, CPU, Version                          string
	MemoryMiB                                                  int
	MACs                                                       []inventory.MAC
}

// Boot is what a machine gets.
type Boot string

// The decisions.
const (
	BootIgnore Boot = "ignore" // an address at most, no boot options; nothing of ours runs
	BootDisk   Boot = "disk"   // its own disk, in the way of Decision.Disk
	BootWait   Boot = "wait"   // a script that says why, waits, and asks again
	BootPark   Boot = "park"   // a script that says why, waits long and restarts the machine: the loop breaker
	BootImage  Boot = "image"  // the profile's image
	BootMenu   Boot = "menu"   // a menu for the one who sits at the console
	BootAgent  Boot = "agent"  // our RAM-disk agent, which does what the host's operation wants
)

// Plan is what provision found out about a known host; Decide turns it into a Decision.
type Plan struct {
	// Work is the running operation of the host, nil if there is none. It comes before the profile.
	Work    *Work
	Profile *inventory.Profile
	Image   *inventory.Image
	// Config says where the image finds its configuration; nil when there is none.
	Config *ConfigOffer
	// Problem says why no image can be given although the host is accepted: no profile matches (of kind NotFound, and
	// no fault), two tie, the image lacks a file, the database cannot commit.
	Problem *inventory.Error
	// Policy applies while the host is not accepted.
	Policy inventory.UnknownPolicy
	// Quirks are the rows of the quirk table in force: the built-in ones and the admin's.
	Quirks []Quirk
	// Loaders has the boot files that exist.
	Loaders func(name string) bool
	// Signatures has who signed them, and whom a shim trusts. If a function is nil, nothing is known.
	Signatures Signatures
	// MenuFor is how long people may choose something else at the machine's console; 0: there is no menu.
	MenuFor time.Duration
	// Rescue is the image of the menu's rescue system, nil for none.
	Rescue *inventory.Image
}

// Signatures says who signed files. Each function may be nil.
type Signatures struct {
	// OfKernel returns who signed a kernel; ok is false when it cannot be read.
	OfKernel func(d inventory.Digest) (signers []Signer, ok bool)
	// IsSigned reports whether somebody signed a boot file, Trusts whom a shim accepts besides the firmware's authorities.
	IsSigned func(loader string) bool
	Trusts   func(loader string) []string
	// SignersOf returns who signed a boot file.
	SignersOf func(loader string) []Signer
}

// Work is what an operation needs from the host's next boot.
type Work struct {
	// Boot is BootAgent, BootImage, BootDisk or BootWait.
	Boot   Boot
	Reason string
	Hint   string
	Refs   []inventory.Ref // what Reason and Hint name besides the host
	// Agent is the image with our agent, for BootAgent; nil when there is none for this machine.
	Agent *inventory.Image
	Args  []string // added to the agent's
}

// ConfigOffer is how a boot script gives a rendered configuration to the system.
type ConfigOffer struct {
	// Name is the document whose URL is ${config}; "" when that is the folder that holds them all.
	Name string
	// HasInitrd says that the documents come as one more initrd. Then the kernel's arguments with ${config} are left
	// out, because no address of a document is needed.
	HasInitrd bool
	Args      []string // added to the image's and the profile's
	Base      string   // another base for the documents than that of the boot, such as https; "" for the same
}

// ConfigRequest is a machine's request for a document of its configuration.
type ConfigRequest struct {
	Session inventory.SessionID
	Source  netip.Addr // the machine
	Base    string     // our boot server as it reaches us
	Name    string     // of the document, or ConfigArchive; "" lists them
	Key     string     // of the documents that our agent places; "" for none
	Accept  string     // what it says it can read
	Agent   string     // what it says it is
	IsPeek  bool       // it asks only for the size
	IsTLS   bool       // nobody on the way can read it
}

// ConfigDocument is a document as it is sent.
type ConfigDocument struct {
	ContentType string
	Data        []byte
}

// ConfigArchive is the name of the documents as an initrd.
const ConfigArchive = "config.cpio"

// ConfigURL is the address of a document of a session, "" for the folder. key is what the documents of our agent need, "" for
// none.
func ConfigURL(base string, s inventory.SessionID, key, name string) string {
	parts := []string{"config"}
	if key != "" {
		parts = []string{key, "config"}
	}
	address := URL(base, s, parts...) + "/"
	for i, part := range strings.Split(name, "/") {
		if i > 0 {
			address += "/"
		}
		address += url.PathEscape(part)
	}
	return address
}

// Decision is what a machine gets to boot and why. Reason and Hint are for people; the console, the timeline and the
// log all show them.
type Decision struct {
	Boot   Boot
	Disk   inventory.DiskBoot // for BootDisk
	Loader string             // file for StageFirmware, "" when it gets none
	Chain  Chain              // for StageFirmware, "" when it gets nothing
	Reason string
	Hint   string
	Refs   []inventory.Ref // what Reason and Hint name besides the machine
	Again  time.Duration   // for BootWait and BootPark: when it should ask or restart
	IsTrap bool            // true when the reason is a fault that should be an open issue (IssueBootRefused)
}

// Reply is what DHCP adds to an answer so that the machine boots. Empty fields are left out.
type Reply struct {
	Next  netip.Addr // siaddr and option 66
	File  string     // boot file: a loader's name for TFTP, or an absolute URL; header field or option 67
	Class string     // option 60
	PXE   []byte     // option 43
	IPXE  []byte     // option 175
}

// ForeignServer is another DHCP server on one of our interfaces.
type ForeignServer struct {
	Subnet    string        `json:"subnet"`
	Interface string        `json:"interface"`
	Server    netip.Addr    `json:"server"`         // its server identifier (option 54); over IPv6 its link-local address, invalid until it is heard
	DUID      string        `json:"duid,omitempty"` // what it calls itself in DHCPv6, in hex
	MAC       inventory.MAC `json:"mac,omitempty"`  // of the frame that its answer came in: its own, or its relay's
	IsHeard   bool          `json:"isHeard"`        // Slipway received its packets; otherwise a machine named it, which proves nothing
	IsProxy   bool          `json:"isProxy"`        // it gave no address, only boot options
	SinceAt   time.Time     `json:"sinceAt"`
	LastAt    time.Time     `json:"lastAt"`
}

// Name identifies a server: its DUID in DHCPv6, else its address.
func (f *ForeignServer) Name() string {
	if f.DUID != "" {
		return "DUID " + f.DUID
	}
	return f.Server.String()
}

// Transfer is a boot file or artefact on its way to a machine, as the servers that send it report.
type Transfer struct {
	Session inventory.SessionID // "" when only the source address is known (TFTP)
	Source  netip.Addr
	Proto   string // tftp or http
	Name    string // loader or artefact name
	Bytes   int64  // sent so far
	Size    int64
	Took    time.Duration
	Err     error // nil while running and when it arrived whole

	// Of TFTP.
	Block       int   // bytes of a block
	Window      int   // blocks of a flight
	Resent      int64 // blocks that were sent more than once
	Unconfirmed bool  // all was sent, the last block was not acknowledged: GRUB and U-Boot never do
}

// Report is what a boot script or a booted system tells about itself.
type Report struct {
	Step   ReportStep
	Part   string // what the machine was doing, where that matters: PartBootstrap
	Detail string // one line for people
	Log    string // more text, kept with the event
}

// PartBootstrap is the part of a first boot that makes the machine a node of a cluster.
const PartBootstrap = "bootstrap"

// ReportStep says how far the machine is.
type ReportStep string

// The steps of a report.
const (
	ReportProgress  ReportStep = "progress"  // still on its way; Detail says where
	ReportDisk      ReportStep = "disk"      // the script is about to hand over to the machine's own disk
	ReportUp        ReportStep = "up"        // the booted system runs
	ReportInstalled ReportStep = "installed" // the installer has finished; the next boot is from disk
	ReportFailed    ReportStep = "failed"    // it stopped; Detail says why
)
