package cloudinit

// keys are the top-level keys of a cloud-config, with the first version that knows each; "" stands for all versions
// that Slipway renders for.
var keys = map[string]string{
	"allow_public_ssh_keys": "", "ansible": "22.3", "apk_repos": "", "apt": "", "apt_pipelining": "",
	"apt_reboot_if_required": "", "apt_update": "", "apt_upgrade": "", "authkey_hash": "", "autoinstall": "",
	"bootcmd": "", "byobu_by_default": "", "ca-certs": "", "ca_certs": "22.3", "chef": "", "chpasswd": "",
	"cloud_config_modules": "", "cloud_final_modules": "", "cloud_init_modules": "", "create_hostname_file": "22.3",
	"device_aliases": "", "disable_ec2_metadata": "", "disable_root": "", "disable_root_opts": "", "disk_setup": "",
	"drivers": "", "fan": "", "final_message": "", "fqdn": "", "fs_setup": "", "groups": "", "growpart": "",
	"grub-dpkg": "", "grub_dpkg": "22.3", "hostname": "", "keyboard": "22.2", "landscape": "", "launch-index": "",
	"locale": "", "locale_configfile": "", "lxd": "", "manage_etc_hosts": "", "manage_resolv_conf": "",
	"mcollective": "", "merge_how": "", "merge_type": "", "migrate": "", "mount_default_fields": "", "mounts": "",
	"network": "", "no_ssh_fingerprints": "", "ntp": "", "output": "", "package_reboot_if_required": "",
	"package_update": "", "package_upgrade": "", "packages": "", "password": "", "phone_home": "", "power_state": "",
	"prefer_fqdn_over_hostname": "", "preserve_hostname": "", "puppet": "", "random_seed": "", "reporting": "",
	"resize_rootfs": "", "resolv_conf": "", "rh_subscription": "", "rpi": "25.2", "rsyslog": "", "runcmd": "",
	"salt_minion": "", "snap": "", "spacewalk": "", "ssh": "", "ssh_authorized_keys": "", "ssh_deletekeys": "",
	"ssh_fp_console_blacklist": "", "ssh_genkeytypes": "", "ssh_import_id": "", "ssh_key_console_blacklist": "",
	"ssh_keys": "", "ssh_publish_hostkeys": "", "ssh_pwauth": "", "ssh_quiet_keygen": "", "swap": "",
	"system_info": "", "timezone": "", "ubuntu_advantage": "", "ubuntu_pro": "24.1", "updates": "", "user": "",
	"users": "", "vendor_data": "", "version": "", "wireguard": "22.3", "write_files": "", "yum_repo_dir": "",
	"yum_repos": "", "zypper": "",
}

// KnownKeys returns the top-level keys that a version of cloud-init knows, each with the version that brought it.
func KnownKeys(version string) map[string]string {
	known := map[string]string{}
	for k, since := range keys {
		if since == "" || CompareVersions(version, since) >= 0 {
			known[k] = since
		}
	}
	return known
}
