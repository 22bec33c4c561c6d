// In place of energy.cpp in a library without the energy meter.
#include "status.h"
#include "types/fail.h"

static phonebit_status absent() {
  return phonebit::c_api::guarded(
      [] { phonebit::fail_absent("the energy meter", "PHONEBIT_ENERGY", "or measure outside the app"); });
}

phonebit_status phonebit_energy_source_count(int32_t* /*count*/) { return absent(); }

phonebit_status phonebit_energy_source_get(int32_t /*index*/, phonebit_energy_source_info* /*info*/) {
  return absent();
}

phonebit_status phonebit_energy_meter_create(const char* /*source*/, phonebit_energy_meter** /*meter*/) {
  return absent();
}

void phonebit_energy_meter_destroy(phonebit_energy_meter* /*meter*/) {}

phonebit_status phonebit_energy_meter_start(phonebit_energy_meter* /*meter*/) { return absent(); }

phonebit_status phonebit_energy_meter_read(phonebit_energy_meter* /*meter*/,
                                           phonebit_energy_result* /*result*/) {
  return absent();
}

phonebit_status phonebit_energy_meter_stop(phonebit_energy_meter* /*meter*/,
                                           phonebit_energy_result* /*result*/) {
  return absent();
}
