#!/bin/sh
# tiny-image.sh FOLDER: an image for `VK_RUNTIME=qemu`, put together from Debian's packages. Nothing is installed, and no root is needed.
#
# The guest boots in seconds. It has busybox and QEMU's guest agent, counts into /srv/counter ten times a second, serves that folder at port 8080,
# and has a shell at its console. PACKAGES names folders, separated by
# colons, where the packages are unpacked already; without it they are fetched with apt.
set -eu
image=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "${PACKAGES:-}" ]; then
    PACKAGES=$work/packages
    mkdir -p "$work/debs" "$PACKAGES"
    image_package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ { print $2; exit }')
    needed=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances busybox-static qemu-guest-agent | grep '^[a-z0-9]' | grep -v ':i386' | sort -u)
    # shellcheck disable=SC2086
    (cd "$work/debs" && apt-get download $image_package $needed)
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$PACKAGES"; done
fi

folders=$(echo "$PACKAGES" | tr ':' ' ')
# shellcheck disable=SC2086
found() { find $folders -path "$1" | sort | tail -n 1; }
libraries=
for folder in $folders; do
    libraries=$libraries:$folder/usr/lib/x86_64-linux-gnu:$folder/lib/x86_64-linux-gnu
done
libraries=${libraries#:}
busybox=$(found '*bin/busybox')
agent=$(found '*sbin/qemu-ga')
kernel=$(found '*boot/vmlinuz-*')
version=$(basename "$kernel" | sed 's/^vmlinuz-//')
modules=$(found "*lib/modules/$version/kernel")

root=$work/root
mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/lib/modules" "$root/lib64" "$root/lib/x86_64-linux-gnu"
cp "$busybox" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
cp "$agent" "$root/bin/qemu-ga"
LD_LIBRARY_PATH=$libraries ldd "$agent" | grep -o '/[^ ]*' | while read -r library; do
    case $library in
    *ld-linux*) cp -L "$library" "$root/lib64/" ;;
    *) cp -L "$library" "$root/lib/x86_64-linux-gnu/" ;;
    esac
done
number=10
for module in drivers/virtio/virtio drivers/virtio/virtio_ring drivers/virtio/virtio_pci_legacy_dev drivers/virtio/virtio_pci_modern_dev \
    drivers/virtio/virtio_pci drivers/char/virtio_console net/core/failover drivers/net/net_failover drivers/net/virtio_net drivers/block/virtio_blk; do
    # Some kernels have it built in.
    for file in "$modules/$module.ko" "$modules/$module.ko.xz"; do
        if [ -f "$file" ]; then cp "$file" "$root/lib/modules/$number-$(basename "$file")"; fi
    done
    number=$((number + 1))
done
cat > "$root/init" <<'INIT'
#!/bin/sh
export PATH=/bin:/sbin LD_LIBRARY_PATH=/lib/x86_64-linux-gnu
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /tmp /run /srv /dev/pts; mount -t devpts pts /dev/pts
for module in /lib/modules/*; do insmod $module; done
ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2
(n=0; while :; do n=$((n+1)); echo $n > /srv/next; mv /srv/next /srv/counter; sleep 0.1; done) &
while [ ! -e /dev/vport0p1 ] && [ ! -e /dev/vport1p1 ]; do sleep 0.1; done
qemu-ga -m virtio-serial -p $(ls /dev/vport*p1 | head -n 1) -t /run -f /run/agent.pid &
httpd -p 8080 -h /srv
echo guest is ready
while :; do setsid cttyhack sh < /dev/ttyS0 > /dev/ttyS0 2>&1; sleep 1; done
INIT
chmod +x "$root/init"

mkdir -p "$image"
# busybox has a cpio; a small Debian has none of its own.
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) > "$image/initrd"
cp "$kernel" "$image/vmlinuz"
echo "console=ttyS0 quiet panic=1 random.trust_cpu=on" > "$image/cmdline"
echo "$image: Debian's kernel $version, busybox and QEMU's guest agent"
