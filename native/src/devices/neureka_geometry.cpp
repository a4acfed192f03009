// Which cells of a NEUREKA job's padded input hold data.
#include "devices/neureka_geometry.h"

#include <algorithm>

namespace tilewright {

NeurekaBorder NeurekaBorder::of_rows(const NeurekaJob &job, const NeurekaQuirks &quirks) {
    return of(job, quirks, job.row_tiles, job.rows(), job.input_row_remainder, job.padding.top, job.padding.bottom);
}

NeurekaBorder NeurekaBorder::of_columns(const NeurekaJob &job, const NeurekaQuirks &quirks) {
    return of(job, quirks, job.column_tiles, job.columns(), job.input_column_remainder, job.padding.left,
              job.padding.right);
}

NeurekaBorder NeurekaBorder::of(const NeurekaJob &job, const NeurekaQuirks &quirks, uint32_t tiles, uint32_t outputs,
                                uint32_t input_remainder, uint32_t before, uint32_t after) {
    const uint32_t last_tile = (tiles - 1) * neureka_tile_side;
    const uint32_t buffer = neureka_tile_side + job.filter_size() - 1;
    NeurekaBorder border;
    border.size_ = outputs + job.filter_size() - 1;
    border.padding_end_ = before;
    const uint32_t end = quirks.padding_from_buffer_end ? last_tile + buffer : border.size_;
    border.padding_begin_ = end - std::min(after, end);
    border.loaded_ = last_tile + (input_remainder == 0 ? buffer : input_remainder);
    return border;
}

NeurekaCell neureka_cell(const NeurekaBorder &rows, const NeurekaBorder &columns, uint32_t row, uint32_t column,
                         const NeurekaQuirks &quirks) {
    const bool padded = rows.padded(row) || columns.padded(column);
    const bool cut = rows.cut(row) || columns.cut(column);
    if (cut && (quirks.padding_from_buffer_end || !padded))
        return NeurekaCell::zero;
    return padded ? NeurekaCell::padding : NeurekaCell::memory;
}

} // namespace tilewright
