"""/proc/cmdline -> the parameters that affect performance; the others may contain passwords and addresses.

Names: Linux, Documentation/admin-guide/kernel-parameters.txt.
"""

from __future__ import annotations

_ALLOWED = """
    mitigations spectre_v2 spectre_v1 nospectre_v1 nospectre_v2 spec_store_bypass_disable l1tf mds tsx tsx_async_abort
    retbleed nopti pti nosmt noibrs noibpb gather_data_sampling spec_rstack_overflow srbds mmio_stale_data
    isolcpus nohz nohz_full rcu_nocbs rcu_nocb_poll irqaffinity idle nohlt processor.max_cstate intel_idle.max_cstate
    intel_pstate amd_pstate amd_prefcore cpufreq.off cpufreq.default_governor cpuidle.off cpuidle_haltpoll.force
    transparent_hugepage hugepages hugepagesz default_hugepagesz hugetlb_cma numa numa_balancing mem memmap maxcpus
    nr_cpus possible_cpus nosmp noapic iommu intel_iommu amd_iommu iommu.passthrough iommu.strict pci pcie_aspm
    pcie_aspm.policy tsc clocksource hpet nmi_watchdog nowatchdog nosoftlockup skew_tick preempt audit
    selinux init_on_alloc init_on_free page_poison slub_debug slab_nomerge randomize_kstack_offset kpti swiotlb
    crashkernel efi_fake_mem memory_hotplug.memmap_on_memory cgroup_disable cgroup_enable cgroup_no_v1 psi swapaccount
    systemd.unified_cgroup_hierarchy zswap.enabled split_lock_detect split_lock_mitigate clearcpuid noxsave nox2apic
    x2apic_phys kvm-intel.nested kvm_amd.nested nested_pvm deferred_init sched_vcpu_pack haltpoll.guest_halt_poll_ns
    threadirqs workqueue.power_efficient rcutree.kthread_prio skew_tick nosched_autogroup noautogroup
    """


def read_command_line(text: str) -> str | None:
    """The allowed parameters in their order, separated by spaces; None if there are none. Never fails.

    Words after "--" belong to init and are not read.
    """
    kept: list[str] = []
    for word in text.split():
        if word == "--":
            break
        if word.partition("=")[0].replace("-", "_") in _NORMAL:  # the kernel accepts - for _ in parameter names
            kept.append(word)
    return " ".join(kept) or None


_NORMAL = frozenset(name.replace("-", "_") for name in _ALLOWED.split())
