//! A table of results, which other libraries take through Arrow's C data interface.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyFloat, PyInt, PyList, PyString, PyType};
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

/// The type of Python's values of a column.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Boolean,
    Whole,
    Number,
    Text,
}

/// A table with named columns.
///
/// polars.DataFrame(table), pandas.DataFrame.from_arrow(table), pyarrow.table(table) and DuckDB take it through Arrow's C
/// data interface, without a copy. table["column"] is a list, without any of them.
#[pyclass(frozen, module = "evenhand")]
pub(crate) struct Table {
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
}

impl Table {
    /// Makes a table of columns of the same length.
    pub(crate) fn new(columns: Vec<(String, ArrayRef)>) -> PyResult<Table> {
        let rows = columns.first().map_or(0, |(_, array)| array.len());
        let field = |(name, array): &(String, ArrayRef)| Field::new(name, array.data_type().clone(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
        let batch = batch.map_err(|error| PyTypeError::new_err(error.to_string()))?;
        Ok(Table { batches: vec![batch], schema })
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

#[pymethods]
impl Table {
    /// Makes a table of lists of the same length, by column.
    ///
    /// A column of None alone, or with a float, holds floats; otherwise integers, texts or booleans.
    #[classmethod]
    fn from_columns(_class: &Bound<'_, PyType>, columns: Vec<(String, Bound<'_, PyList>)>) -> PyResult<Table> {
        let lengths = columns.iter().map(|(name, values)| (name, values.len()));
        let mut lengths = lengths.clone().zip(lengths.skip(1));
        if let Some(((first, m), (other, n))) = lengths.find(|((_, m), (_, n))| m != n) {
            return Err(PyTypeError::new_err(format!("column {first:?} has {m} values and column {other:?} {n}")));
        }
        let arrays = columns.into_iter().map(|(name, values)| {
            let array = array_of(&name, &values)?;
            Ok((name, array))
        });
        Table::new(arrays.collect::<PyResult<_>>()?)
    }

    /// Joins tables of the same columns, one below the other.
    #[classmethod]
    fn concatenate(_class: &Bound<'_, PyType>, tables: Vec<PyRef<'_, Table>>) -> PyResult<Table> {
        let Some(first) = tables.first() else { return Table::new(Vec::new()) };
        if let Some(other) = tables.iter().find(|table| table.schema != first.schema) {
            let error = format!("tables of different columns: {:?} and {:?}", first.columns(), other.columns());
            return Err(PyTypeError::new_err(error));
        }
        let batches = tables.iter().flat_map(|table| table.batches.iter().cloned()).collect();
        Ok(Table { batches, schema: first.schema.clone() })
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    /// Returns a column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        let Ok(at) = self.schema.index_of(column) else {
            let error = format!("no column {column:?}, expected one of: {}", self.columns().join(", "));
            return Err(PyKeyError::new_err(error));
        };
        let list = PyList::empty(py);
        for batch in &self.batches {
            append_values(py, batch.column(at), &list)?;
        }
        Ok(list)
    }

    /// Returns an iterator over the rows: a dict for each.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        let names = self.columns();
        let columns = names.iter().map(|name| Ok(self.__getitem__(py, name)?.unbind()));
        Ok(Rows { columns: columns.collect::<PyResult<_>>()?, names, at: 0, rows: self.rows() })
    }

    fn __repr__(&self) -> String {
        format!("<evenhand.Table: {} rows of {}>", self.rows(), self.columns().join(", "))
    }

    /// Arrow's C data interface: a stream of the table's record batches.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let field = Arc::new(Field::new_struct("", self.schema.fields().clone(), false));
        let arrays: Vec<ArrayRef> = self
            .batches
            .iter()
            .map(|batch| Arc::new(arrow_array::StructArray::from(batch.clone())) as ArrayRef)
            .collect();
        let reader = ArrayIterator::new(arrays.into_iter().map(Ok), field);
        Ok(to_stream_pycapsule(py, Box::new(reader), requested_schema)?)
    }

    /// Arrow's C data interface: the columns' names and types.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }
}

/// The rows of a table, as dicts, one after the other.
#[pyclass(module = "evenhand")]
struct Rows {
    names: Vec<String>,
    columns: Vec<Py<PyList>>,
    at: usize,
    rows: usize,
}

#[pymethods]
impl Rows {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.at == self.rows {
            return Ok(None);
        }
        let row = PyDict::new(py);
        for (name, column) in self.names.iter().zip(&self.columns) {
            row.set_item(name, column.bind(py).get_item(self.at)?)?;
        }
        self.at += 1;
        Ok(Some(row))
    }
}

/// Makes a column of Python's values.
fn array_of(name: &str, values: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    let mut kind: Option<Kind> = None;
    for value in values.iter().filter(|value| !value.is_none()) {
        let this = kind_of(&value).ok_or_else(|| {
            PyTypeError::new_err(format!("column {name:?}: found {value}, expected a number, a text, a bool or None"))
        })?;
        kind = match (kind, this) {
            (None, this) => Some(this),
            (Some(before), this) if before == this => kind,
            (Some(Kind::Whole), Kind::Number) | (Some(Kind::Number), Kind::Whole) => Some(Kind::Number),
            _ => return Err(PyTypeError::new_err(format!("column {name:?}: values of different types"))),
        };
    }
    Ok(match kind.unwrap_or(Kind::Number) {
        Kind::Boolean => Arc::new(BooleanArray::from(values.extract::<Vec<Option<bool>>>()?)),
        Kind::Whole => Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)),
        Kind::Number => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
        Kind::Text => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
    })
}

fn kind_of(value: &Bound<'_, PyAny>) -> Option<Kind> {
    // bool before int, whose subclass it is.
    if value.is_instance_of::<PyBool>() {
        Some(Kind::Boolean)
    } else if value.is_instance_of::<PyInt>() {
        Some(Kind::Whole)
    } else if value.is_instance_of::<PyFloat>() {
        Some(Kind::Number)
    } else if value.is_instance_of::<PyString>() {
        Some(Kind::Text)
    } else {
        None
    }
}

fn append_values(py: Python<'_>, array: &ArrayRef, list: &Bound<'_, PyList>) -> PyResult<()> {
    match array.data_type() {
        DataType::Boolean => array.as_boolean().iter().try_for_each(|value| list.append(value)),
        DataType::Int64 => array.as_primitive::<Int64Type>().iter().try_for_each(|value| list.append(value)),
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().try_for_each(|value| list.append(value)),
        DataType::Utf8 => array.as_string::<i32>().iter().try_for_each(|value| match value {
            // Names repeat.
            Some(text) => list.append(PyString::intern(py, text)),
            None => list.append(py.None()),
        }),
        other => Err(PyTypeError::new_err(format!("a column of {other}"))),
    }
}
