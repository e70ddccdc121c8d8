"""Tensors as registered parts: in place where libantdt can read and write the memory itself (on the
CPU, contiguous), else by a copy on the CPU."""
from __future__ import annotations

from typing import TYPE_CHECKING, Dict, NamedTuple, Optional, Tuple

import torch

from antdt import _abi

if TYPE_CHECKING:
    from antdt._member import Member

DTYPES: Dict[torch.dtype, int] = {
    torch.float32: _abi.F32, torch.float64: _abi.F64, torch.float16: _abi.F16,
    torch.bfloat16: _abi.BF16, torch.int64: _abi.I64, torch.int32: _abi.I32,
    torch.int16: _abi.I16, torch.int8: _abi.I8, torch.uint8: _abi.U8, torch.bool: _abi.BOOL}
BY_NAME: Dict[str, torch.dtype] = {
    "float32": torch.float32, "float64": torch.float64, "float16": torch.float16,
    "bfloat16": torch.bfloat16, "int64": torch.int64, "int32": torch.int32, "int16": torch.int16,
    "int8": torch.int8, "uint8": torch.uint8, "bool": torch.bool}


def is_plain(tensor: torch.Tensor) -> bool:
    """Its memory is the values, one after the other, and this process can reach it."""
    return (tensor.device.type == "cpu" and tensor.layout == torch.strided
            and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg())


class Form(NamedTuple):
    """What a tensor is like, without its memory."""
    dtype: torch.dtype
    layout: torch.layout
    shape: torch.Size
    strides: Tuple[int, ...]
    device: torch.device

    @staticmethod
    def of(tensor: torch.Tensor) -> "Form":
        strided = tensor.layout == torch.strided
        strides = torch.empty_like(tensor, device="meta").stride() if strided else ()
        return Form(tensor.dtype, tensor.layout, tensor.shape, tuple(strides), tensor.device)


class PartMemory:
    """One tensor of the state under the name of a part. The tensor may be replaced by another one of
    the same type and shape."""

    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        self._check(name, tensor.dtype, tensor.layout)
        self.name = name
        self.tensor = tensor
        self._copy: Optional[torch.Tensor] = None
        self._registered = -1
        self._to_come: Optional[Form] = None

    @classmethod
    def to_come(cls, name: str, form: Form) -> "PartMemory":
        """Of a tensor that nobody has made yet: zeros in the processor's memory, until follow() or placed()."""
        cls._check(name, form.dtype, form.layout)
        part = cls(name, torch.zeros(form.shape, dtype=form.dtype))
        part._to_come = form
        return part

    @staticmethod
    def _check(name: str, dtype: torch.dtype, layout: torch.layout) -> None:
        if dtype not in DTYPES or layout != torch.strided:
            raise TypeError(f"{name} is a {layout} tensor of {dtype}, which cannot be "
                            f"part of the training state; {', '.join(BY_NAME)} can, if they are dense")

    def placed(self) -> torch.Tensor:
        """The tensor; one that was to come is made, where and as it is to be, with the values that are here."""
        if self._to_come is not None:
            form = self._to_come
            tensor = torch.empty_strided(form.shape, form.strides, dtype=form.dtype, device=form.device)
            self.follow(self.tensor if is_plain(tensor) else tensor.copy_(self.tensor))
        return self.tensor

    def follow(self, tensor: torch.Tensor) -> None:
        """Sets the tensor of this name."""
        if tensor.dtype != self.tensor.dtype or tensor.shape != self.tensor.shape:
            raise TypeError(
                f"{self.name} was {tuple(self.tensor.shape)} of {self.tensor.dtype} when the job "
                f"began, and is {tuple(tensor.shape)} of {tensor.dtype} now: the training state has "
                f"to keep its shape")
        if self._to_come is not None:
            self._to_come = None
            if not is_plain(tensor):
                self._copy = self.tensor  # it is registered already
        self.tensor = tensor

    def register(self, member: "Member") -> None:
        """Tells the library where the values are, if that is news."""
        if is_plain(self.tensor):
            self._copy = None
            memory = self.tensor
        else:
            if self._copy is None:
                self._copy = torch.zeros(self.tensor.shape, dtype=self.tensor.dtype)
            memory = self._copy
        if memory.data_ptr() == self._registered:
            return
        member.register(self.name, DTYPES[memory.dtype], memory.data_ptr(),
                        memory.numel() * memory.element_size(), memory.shape)
        self._registered = memory.data_ptr()

    def write_out(self) -> None:
        """The copy, where there is one, becomes what the tensor is."""
        if self._copy is not None:
            self._copy.copy_(self.tensor)

    def read_in(self) -> None:
        """The other way round."""
        if self._copy is not None:
            with torch.no_grad():
                self.tensor.copy_(self._copy)
