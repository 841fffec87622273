package machineconfig

// Storage is how disks are laid out. Empty leaves it to the OS or installer.
type Storage struct {
	// Layout is a ready-made one that an installer makes on the root device: os-default, lvm or direct.
	Layout      string        `yaml:"layout,omitempty" json:"layout,omitempty"`
	Disks       []Disk        `yaml:"disks,omitempty" json:"disks,omitempty"`
	RAIDs       []RAID        `yaml:"raids,omitempty" json:"raids,omitempty"`
	LUKS        []LUKS        `yaml:"luks,omitempty" json:"luks,omitempty"`
	LVM         []VolumeGroup `yaml:"lvm,omitempty" json:"lvm,omitempty"`
	Filesystems []Filesystem  `yaml:"filesystems,omitempty" json:"filesystems,omitempty"`
	Mounts      []Mount       `yaml:"mounts,omitempty" json:"mounts,omitempty"`
}

// Choose says which of the disks that match is taken; the first one when empty.
type Choose string

// The ways to choose among disks. The fastest is an NVMe disk, else one that does not rotate; the largest of these.
const (
	Largest  Choose = "largest"
	Smallest Choose = "smallest"
	Fastest  Choose = "fastest"
)

// DeviceSelector chooses a disk. Path is a device path; the others are matched by tools that can.
type DeviceSelector struct {
	Path       string `yaml:"path,omitempty" json:"path,omitempty"`
	Serial     string `yaml:"serial,omitempty" json:"serial,omitempty"`
	WWN        string `yaml:"wwn,omitempty" json:"wwn,omitempty"`
	Model      string `yaml:"model,omitempty" json:"model,omitempty"`
	MinGiB     int    `yaml:"minGiB,omitempty" json:"minGiB,omitempty"`
	MaxGiB     int    `yaml:"maxGiB,omitempty" json:"maxGiB,omitempty"`
	Rotational *bool  `yaml:"rotational,omitempty" json:"rotational,omitempty"`
	Choose     Choose `yaml:"choose,omitempty" json:"choose,omitempty"`
}

// Disk is a disk with its partition table (GPT). Name is what others refer to it by when it has no partitions.
type Disk struct {
	Name       string         `yaml:"name" json:"name"`
	Device     DeviceSelector `yaml:"device,omitempty" json:"device,omitzero"` // the root device when empty
	WipeTable  bool           `yaml:"wipeTable,omitempty" json:"wipeTable,omitempty"`
	Partitions []Partition    `yaml:"partitions,omitempty" json:"partitions,omitempty"`
}

// Partition is a piece of a disk. Label names it: devices refer to it by that.
type Partition struct {
	Label     string `yaml:"label" json:"label"`
	Number    int    `yaml:"number,omitempty" json:"number,omitempty"` // 0 is the next free one
	TypeGUID  string `yaml:"typeGUID,omitempty" json:"typeGUID,omitempty"`
	GUID      string `yaml:"guid,omitempty" json:"guid,omitempty"`
	StartMiB  int    `yaml:"startMiB,omitempty" json:"startMiB,omitempty"`
	SizeMiB   int    `yaml:"sizeMiB,omitempty" json:"sizeMiB,omitempty"` // 0 is the rest of the disk
	WipeEntry bool   `yaml:"wipeEntry,omitempty" json:"wipeEntry,omitempty"`
	// Keep says that the partition is there, found by its label, and stays with what is on it.
	Keep bool `yaml:"keep,omitempty" json:"keep,omitempty"`
}

// RAID is a Linux software RAID. Devices are labels of partitions, names of disks, or paths.
type RAID struct {
	Name    string   `yaml:"name" json:"name"`
	Level   string   `yaml:"level" json:"level"` // raid0, raid1, raid4, raid5, raid6, raid10
	Devices []string `yaml:"devices" json:"devices"`
	Spares  int      `yaml:"spares,omitempty" json:"spares,omitempty"`
}

// LUKS is an encrypted volume. Device is a label of a partition, the name of a RAID, or a path.
type LUKS struct {
	Name   string `yaml:"name" json:"name"`
	Device string `yaml:"device" json:"device"`
	Key    string `yaml:"key,omitempty" json:"key,omitempty"` // secret://name
	TPM2   bool   `yaml:"tpm2,omitempty" json:"tpm2,omitempty"`
	Tang   []Tang `yaml:"tang,omitempty" json:"tang,omitempty"`
	Wipe   bool   `yaml:"wipe,omitempty" json:"wipe,omitempty"`
}

// Tang is a server that unlocks a volume while the machine is on its network.
type Tang struct {
	URL        string `yaml:"url" json:"url"`
	Thumbprint string `yaml:"thumbprint" json:"thumbprint"`
}

// VolumeGroup is an LVM volume group.
type VolumeGroup struct {
	Name    string          `yaml:"name" json:"name"`
	Devices []string        `yaml:"devices" json:"devices"`
	LVs     []LogicalVolume `yaml:"lvs,omitempty" json:"lvs,omitempty"`
}

// LogicalVolume is a volume of a group; a file system refers to it as group/name.
type LogicalVolume struct {
	Name    string `yaml:"name" json:"name"`
	SizeMiB int    `yaml:"sizeMiB,omitempty" json:"sizeMiB,omitempty"` // 0 is the rest of the group
	Percent int    `yaml:"percent,omitempty" json:"percent,omitempty"` // of the group, instead of SizeMiB
	Thin    bool   `yaml:"thin,omitempty" json:"thin,omitempty"`       // it is a thin pool, which holds no file system
	Pool    string `yaml:"pool,omitempty" json:"pool,omitempty"`       // thin pool of the group that it is taken from
}

// Filesystem is a file system and where it is mounted. Device is a label of a partition, the name of a RAID or LUKS
// volume, group/name of a logical volume, or a path.
type Filesystem struct {
	Device       string   `yaml:"device" json:"device"`
	Format       string   `yaml:"format" json:"format"` // ext4, xfs, btrfs, vfat or swap
	Label        string   `yaml:"label,omitempty" json:"label,omitempty"`
	UUID         string   `yaml:"uuid,omitempty" json:"uuid,omitempty"`
	MountPoint   string   `yaml:"mountPoint,omitempty" json:"mountPoint,omitempty"`
	Options      []string `yaml:"options,omitempty" json:"options,omitempty"` // of mkfs
	MountOptions []string `yaml:"mountOptions,omitempty" json:"mountOptions,omitempty"`
	Wipe         bool     `yaml:"wipe,omitempty" json:"wipe,omitempty"`
	// Keep says that the file system is there and is mounted as it is.
	Keep bool `yaml:"keep,omitempty" json:"keep,omitempty"`
	// Subvolumes are of btrfs.
	Subvolumes []Subvolume `yaml:"subvolumes,omitempty" json:"subvolumes,omitempty"`
}

// Subvolume is a subvolume of btrfs and where it is mounted.
type Subvolume struct {
	Name         string   `yaml:"name" json:"name"`
	MountPoint   string   `yaml:"mountPoint,omitempty" json:"mountPoint,omitempty"`
	MountOptions []string `yaml:"mountOptions,omitempty" json:"mountOptions,omitempty"`
}

// Mount is a line of fstab(5) for something that exists already: a share of NFS or CIFS, tmpfs, a file system of somebody
// else.
type Mount struct {
	MountPoint string    `yaml:"mountPoint" json:"mountPoint"`
	Source     string    `yaml:"source" json:"source"` // server:/path, //server/share, LABEL=x, UUID=x, a path; tmpfs for tmpfs
	Type       MountType `yaml:"type" json:"type"`
	Options    []string  `yaml:"options,omitempty" json:"options,omitempty"`   // of the mount, x-systemd. ones too; defaults when empty
	Username   string    `yaml:"username,omitempty" json:"username,omitempty"` // of CIFS
	Domain     string    `yaml:"domain,omitempty" json:"domain,omitempty"`     // of CIFS
	Password   string    `yaml:"password,omitempty" json:"password,omitempty"` // of CIFS: secret://NAME
}

// MountType is the type of a file system that is mounted.
type MountType string

// The types of mounts. Auto lets the kernel look.
const (
	NFS   MountType = "nfs"
	NFS4  MountType = "nfs4"
	CIFS  MountType = "cifs"
	Tmpfs MountType = "tmpfs"
	Auto  MountType = "auto"
)

// IsNetwork reports whether the mount needs the network.
func (t MountType) IsNetwork() bool { return t == NFS || t == NFS4 || t == CIFS }
